"""Trials that read more calls than a page can wait for, in the worker.

A trial is a job in slices (`tenants.slices`). A step reads the calls of a day, newest first, and
stores their sums; what a page or a cancelled trial has read so far is judged as it is.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec
from django.utils import timezone

from audit.alerts.judging import Cell
from audit.alerts.rules import Rule, WindowCondition
from audit.alerts.trial import BACK, Read, Trial, judge, oldest_of, read_back
from audit.models import AlertTrial
from tenants import slices
from tenants.models import new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, end_jobs, percent

KEPT_FOR: Final = timedelta(days=1)
_TOO_MANY: Final = "The calls of a day could not be read in eight seconds."


def start_trial(
    rule: Rule, rule_id: UUID | None, read: Read, end: datetime, now: datetime, by: str
) -> AlertTrial:
    """Record a trial for the worker, which goes on where `read` ends. The caller defers the task.

    Needs the scope.
    """
    return AlertTrial.objects.create(
        tenant_id=current_tenant_id(),
        id=new_id(),
        created_at=now,
        created_by=by,
        rule=rule.model_dump(mode="json"),
        rule_id=rule_id,
        until=end,
        read_from=read.since,
        sums=_dumped(read.cells),
        state=JobState.WAITING,
        problem="",
    )


def find_trial(pk: UUID) -> AlertTrial | None:
    """A trial of the scope's tenant, or None."""
    return AlertTrial.objects.for_tenant(current_tenant_id()).filter(id=pk).first()


def cancel_trial(pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. What was read stays. False if there is nothing to stop."""
    trials = AlertTrial.objects.for_tenant(current_tenant_id()).filter(id=pk)
    return end_jobs(trials, JobState.CANCELLED, now)


def forget_old(now: datetime) -> None:
    """Delete trials older than `KEPT_FOR`, in any state. Needs the scope."""
    trials = AlertTrial.objects.for_tenant(current_tenant_id())
    trials.filter(created_at__lt=now - KEPT_FOR).delete()


def rule_of_trial(one: AlertTrial) -> tuple[Rule, WindowCondition]:
    """The rule that is tried, and its condition."""
    rule = Rule.model_validate(one.rule)
    assert isinstance(rule.condition, WindowCondition), "others are not tried"
    return rule, rule.condition


def percent_read(one: AlertTrial) -> int:
    """How much of the time was read."""
    if one.state == JobState.DONE:
        return 100
    whole = one.until - oldest_of(rule_of_trial(one)[1], one.until, BACK)
    return percent(int((one.until - one.read_from).total_seconds()), int(whole.total_seconds()))


def trial_of(one: AlertTrial) -> Trial:
    """What the rule would have said, as far as calls were read."""
    read = Read(_loaded(one.sums), one.read_from)
    return judge(rule_of_trial(one)[1], read, one.until, BACK)


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue a trial for about `seconds`. True if there is more to do."""
    return slices.run_slice(partial(_run_step, tenant_id, pk), seconds)


def _run_step(tenant_id: UUID, pk: UUID, deadline: float) -> bool:
    """Read until the deadline, a day at least, in one transaction. False when it has ended."""
    with tenant_scope(tenant_id):
        trials = AlertTrial.objects.for_tenant(tenant_id)
        one = trials.filter(id=pk).select_for_update().first()
        if one is None or one.state not in UNDER_WAY:
            return False
        condition = rule_of_trial(one)[1]
        before = Read(_loaded(one.sums), one.read_from)
        read = read_back(condition, before, one.until, BACK, deadline)
        one.sums, one.read_from = _dumped(read.cells), read.since
        one.state = JobState.RUNNING
        if read.since <= oldest_of(condition, one.until, BACK):
            one.state = JobState.DONE
        elif read.since == before.since:
            one.state, one.problem = JobState.FAILED, _TOO_MANY
        if one.state != JobState.RUNNING:
            one.finished_at = timezone.now()
        one.save()
        return one.state == JobState.RUNNING


def _dumped(cells: Mapping[int, Cell]) -> str:
    return msgspec.json.encode({at: _numbers(cell) for at, cell in cells.items()}).decode()


def _numbers(cell: Cell) -> list[Any]:
    counts = (cell.started, cell.completed, cell.failed, cell.violating, cell.violations)
    others = (cell.tokens, cell.looped, cell.level, cell.latency, cell.priced, str(cell.cost))
    return [*counts, *others]


def _loaded(sums: str) -> dict[int, Cell]:
    listed = msgspec.json.decode(sums, type=dict[int, _Numbers])
    return {at: Cell(*numbers[:-1], Decimal(numbers[-1])) for at, numbers in listed.items()}


type _Numbers = tuple[int, int, int, int, int, int, int, int, dict[int, int], int, str]
