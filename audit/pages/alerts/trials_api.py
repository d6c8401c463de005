"""Trials of rules, over the API."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path
from pydantic import Field

from audit.alerts.rules import Severity, WindowCondition
from audit.alerts.trial import BACK, nothing_read
from audit.alerts.trying import (
    cancel_trial,
    find_trial,
    percent_read,
    rule_of_trial,
    start_trial,
    trial_of,
)
from audit.models import AlertTrial
from audit.pages.alerts.api import read_rule
from audit.pages.show.router import router
from audit.tasks.requested import try_alert_rule
from config.http.problems import ProblemError
from tenants.actions import name_of
from tenants.api_acts import Act, Body, acts
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope
from tenants.slices import UNDER_WAY


class TrialBody(Body):
    """A rule of a window that is tried, as it would be saved."""

    rule: dict[str, Any]
    """With `name`, `condition` and so on, as rules are listed."""


class TriedFiring(Answer):
    """A time at which the rule would have fired."""

    from_: datetime = Field(alias="from")
    to: datetime | None
    """Null: it still holds."""
    severity: Severity
    value: float | None


class OneTrial(Answer):
    """A trial of a rule on the last 30 days. Kept for a day."""

    id: UUID
    state: Literal["waiting", "running", "done", "cancelled", "failed"]
    created_at: datetime
    rule: dict[str, Any]
    percent: int
    """How much of the time was read."""
    problem: str
    """Why it failed; empty if it did not."""
    from_: datetime = Field(alias="from")
    """The first instant that was judged."""
    to: datetime
    fired: list[TriedFiring]
    """Empty until it has ended."""


@acts(
    router,
    "POST",
    "/alert-trials",
    OneTrial,
    scope=Scope.OPERATE,
    tag="alerts",
    body=TrialBody,
    status=201,
)
def start_alert_trial(act: Act) -> dict[str, Any]:
    """Try a rule on the last 30 days, in the background. Nothing is saved but the trial."""
    rule, now = read_rule(act.read(TrialBody).rule), timezone.now()
    if not isinstance(rule.condition, WindowCondition):
        raise ProblemError("malformed", "rule.condition: Only rules of windows can be tried.")
    read = nothing_read(rule.condition, now)
    one = start_trial(rule, None, read, now, now, name_of(act.actor))
    try_alert_rule.defer(tenant_id=str(act.tenant.pk), trial_id=str(one.id))
    return _trial(one)


@reads(
    router,
    "/alert-trials/{uuid:trial_id}",
    OneTrial,
    scope=Scope.OPERATE,
    tag="alerts",
    problems=("not_found",),
)
def read_alert_trial(request: HttpRequest, trial_id: Path[UUID]) -> dict[str, Any]:
    """Get how far a trial is, and when the rule would have fired."""
    return _trial(_existing(trial_id))


@acts(
    router,
    "POST",
    "/alert-trials/{uuid:trial_id}/cancel",
    OneTrial,
    scope=Scope.OPERATE,
    tag="alerts",
    problems=("not_found",),
)
def cancel_alert_trial(act: Act, trial_id: Path[UUID]) -> dict[str, Any]:
    """Cancel a trial. What was read is judged."""
    cancel_trial(_existing(trial_id).id, timezone.now())
    return _trial(_existing(trial_id))


def _existing(trial_id: UUID) -> AlertTrial:
    one = find_trial(trial_id)
    if one is None:
        raise ProblemError("not_found", "Trial not found.")
    return one


def _trial(one: AlertTrial) -> dict[str, Any]:
    fired, start, end = [], one.until - BACK, one.until
    if one.state not in UNDER_WAY:
        trial = trial_of(one)
        start, end = trial.start, trial.end
        fired = [
            {
                "from": utc(trial.at(each.start)),
                "to": None if each.end is None else utc(trial.at(each.end)),
                "severity": each.severity,
                "value": each.value.value,
            }
            for each in trial.episodes
        ]
    return {
        "id": one.id,
        "state": one.state,
        "created_at": utc(one.created_at),
        "rule": rule_of_trial(one)[0].model_dump(mode="json"),
        "percent": percent_read(one),
        "problem": one.problem,
        "from": utc(start),
        "to": utc(end),
        "fired": fired,
    }
