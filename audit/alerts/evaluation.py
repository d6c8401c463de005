"""Judges the rules of a tenant: opens alerts, makes them worse, ends them.

An instant is judged `SETTLING` after it, so that events under way still count, and again every
`LATE_EVERY` for as long as `LATENESS`: what arrives later changes no alert. So late events neither
miss an alert nor repeat one, and a worker that was away judges every instant that it missed, up to
`CATCH_UP`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from audit.alerts import life
from audit.alerts.cells import (
    ToolCells,
    instant,
    instant_before,
    is_shared,
    joined,
    of_tools,
    read_calls,
    read_quarter_costs,
    read_tool_costs,
    read_tool_quarters,
    spans,
    starts,
)
from audit.alerts.judging import Burning, Cell, Episode, episodes, values
from audit.alerts.kept import Reading, is_kept, kept_sums
from audit.alerts.life import Finding
from audit.alerts.rules import (
    SHARES_OF_CALLS,
    EventCondition,
    Measure,
    Severity,
    WindowCondition,
)
from audit.alerts.shown import title
from audit.alerts.stored import condition_of
from audit.models import Alert, AlertRule
from audit.queries.call_query import parse
from audit.queries.price_lists import currency_used
from audit.show.charts import range_query
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant
from tenants.scope import current_tenant_id

SETTLING = timedelta(seconds=20)
LATENESS = timedelta(hours=1)
LATE_EVERY = timedelta(minutes=5)
"""How often instants are judged again."""
CATCH_UP = timedelta(days=7)
AWAY = timedelta(minutes=5)
"""A worker that judged nothing for so long was away, which is an entry of the ledger."""
_READ_MS = 5_000


@dataclass(slots=True)
class Due:
    """A rule, and the instants that are judged now: from `first` to `last`, both included."""

    stored: AlertRule
    condition: WindowCondition
    first: int
    last: int
    is_again: bool
    """Whether instants are judged again, and so all their calls are read."""

    @property
    def spans(self) -> list[tuple[datetime, datetime]]:
        """The times whose calls decide; apart, in order."""
        return spans(self.condition, self.warm, self.last)

    @property
    def warm(self) -> int:
        """The first instant whose value is needed to know how long the condition has held."""
        return self.first - self.condition.steps(self.condition.for_minutes)


def evaluate(now: datetime) -> int:
    """Judge the rules of the scope's tenant up to now. Returns how many were judged.

    A rule whose calls cannot be read in five seconds is not judged, and its page says so.
    """
    rules = AlertRule.objects.for_tenant(current_tenant_id()).filter(is_enabled=True)
    due = [
        each
        for stored in rules.order_by("id").select_for_update()
        if (each := _due(stored, now)) is not None
    ]
    alerts = _recent_alerts(due)
    _note_absence(due, now)
    judged = 0
    for each, cells in _read(due):
        problem = "" if cells is not None else "Its calls could not be read in five seconds."
        if cells is not None:
            _judge(each, cells, alerts.get(each.stored.id, []), now)
            judged += 1
        if problem != each.stored.problem:
            AlertRule.objects.for_tenant(each.stored.tenant_id).filter(id=each.stored.id).update(
                problem=problem
            )
    for last, group in _by_last(due):
        AlertRule.objects.for_tenant(current_tenant_id()).filter(
            id__in=[each.stored.id for each in group]
        ).update(judged_to=last)
    return judged


def _due(stored: AlertRule, now: datetime) -> Due | None:
    condition = condition_of(stored)
    if isinstance(condition, EventCondition):
        return None  # see `audit.alerts.watching`
    last = instant_before(condition, now - SETTLING)
    judged_to = instant_before(condition, stored.judged_to)
    if last <= judged_to:
        return None
    # Judging the last hour again is most of the work, and what is late need not be found at once.
    is_again = last * condition.step // LATE_EVERY > judged_to * condition.step // LATE_EVERY
    lateness = LATENESS if is_again else timedelta()
    back = max(stored.judged_to - lateness, stored.changed_at, now - CATCH_UP)
    return Due(stored, condition, instant_before(condition, back) + 1, last, is_again)


def _recent_alerts(due: Iterable[Due]) -> Mapping[object, list[Alert]]:
    """The alerts of each rule that may be about the instants that are judged, oldest first."""
    by_rule: dict[object, list[Alert]] = {}
    since = {each.stored.id: instant(each.condition, each.first) for each in due}
    if not since:
        return by_rule
    alerts = Alert.objects.for_tenant(current_tenant_id()).filter(rule_id__in=since)
    for alert in (
        alerts.exclude(held_to__lt=min(since.values())).order_by("held_from").select_for_update()
    ):
        if alert.held_to is None or alert.held_to >= since[alert.rule_id]:
            by_rule.setdefault(alert.rule_id, []).append(alert)
    return by_rule


def _note_absence(due: list[Due], now: datetime) -> None:
    """Record that the worker was away, if it was."""
    stalled = [each for each in due if each.condition.step < AWAY]
    if not stalled:
        return
    since = max(each.stored.judged_to for each in stalled)
    if now - since <= AWAY:
        return
    record_action(
        Tenant(id=current_tenant_id()),
        THE_SERVER,
        "alert_rule.catch_up",
        f"alert rules were not judged from {since:%Y-%m-%d %H:%M} UTC to now",
        since=since.isoformat(),
        judged_from=max(since, now - CATCH_UP).isoformat(),
    )


def _read(due: list[Due]) -> Iterator[tuple[Due, Mapping[int, Cell] | None]]:
    """The sums of each rule; None if they could not be read in time."""
    by_minute = [each for each in due if is_kept(each.condition)]
    with kept_sums(current_tenant_id()) as kept:
        readings = [Reading(each.condition, each.spans, each.is_again) for each in by_minute]
        yield from zip(by_minute, kept.read(readings, _READ_MS), strict=True)
    together = [each for each in due if not is_kept(each.condition) and is_shared(each.condition)]
    for _, some in groupby(sorted(together, key=_read_together), key=_read_together):
        group = list(some)
        tools = _read_tools(group)
        yield from (
            (each, None if tools is None else of_tools(each.condition, tools)) for each in group
        )
    for each in due:
        if not is_shared(each.condition) and not is_kept(each.condition):
            yield each, _read_whole(each)


def _read_tools(group: list[Due]) -> ToolCells | None:
    """The sums of rules that are read together; None if they could not be read in time."""
    first = group[0].condition
    parts = {at for each in group for at in starts(each.condition, each.warm, each.last)}
    durations = first.measure in SHARES_OF_CALLS

    def read(since: datetime, until: datetime) -> ToolCells:
        if first.step_minutes == 1:
            return read_tool_costs(since, until, _READ_MS)
        if first.measure is Measure.COST:
            return read_quarter_costs(since, until, parts, _READ_MS)
        return read_tool_quarters(since, until, parts, _READ_MS, durations=durations)

    tools: ToolCells = {}
    try:
        for since, until in joined(span for each in group for span in each.spans):
            for tool, cells in read(since, until).items():
                tools.setdefault(tool, {}).update(cells)
    except TimeoutError:
        return None
    return tools


def _read_whole(due: Due) -> dict[int, Cell] | None:
    """The sums of a rule whose calls are all read; None if they could not be read in time."""
    cells: dict[int, Cell] = {}
    try:
        for since, until in due.spans:
            for at, cell in read_calls(due.condition, since, until, _READ_MS).items():
                cells.setdefault(at, Cell()).add(cell)
    except TimeoutError:
        return None
    return cells


def _read_together(due: Due) -> tuple[int, int, int, bool, bool]:
    """What rules must share to be read together: not an hour and thirty days in one read."""
    condition = due.condition
    hours = condition.window_minutes // 60
    return (
        condition.step_minutes,
        condition.compare_with.minutes,
        hours.bit_length(),
        condition.measure in SHARES_OF_CALLS,
        condition.measure is Measure.COST,
    )


def _judge(due: Due, cells: Mapping[int, Cell], alerts: list[Alert], now: datetime) -> None:
    """Compare the episodes of these instants with the alerts that there are."""
    condition = due.condition
    start = instant(condition, due.first)
    current = next((each for each in alerts if each.held_to is None), None)
    was_burning = current is not None and current.held_from < start
    burning = Burning(Severity(current.severity)) if current and was_burning else None
    judged = values(condition, cells, due.warm, due.last)
    firing = episodes(condition, judged, due.first, burning)
    own = None
    if current is not None:
        began = current.held_from
        own = next((each for each in firing if _is_after(condition, each, began)), None)
        _go_on(due, current, own, max(start, began), now)
    for episode in firing:
        if episode is not own:
            _open(due, episode, [each for each in alerts if each is not current], now)


def _is_after(condition: WindowCondition, episode: Episode, at: datetime) -> bool:
    """Whether an episode ends after a time."""
    return episode.end is None or instant(condition, episode.end) > at


def _go_on(
    due: Due, current: Alert, own: Episode | None, earliest: datetime, now: datetime
) -> None:
    """Make the alert that still holds worse, or end it. `own` is the episode that it is about."""
    if own is not None and own.severity is Severity.ALERT and current.severity != Severity.ALERT:
        life.worsen(current, _finding(due, own))
    if own is None:
        life.end(current, earliest, now)
    elif own.end is not None:
        life.end(current, instant(due.condition, own.end), now)


def _open(due: Due, episode: Episode, known: Iterable[Alert], now: datetime) -> None:
    """Open an alert for an episode, unless it is known."""
    finding = _finding(due, episode)
    ended = [each.held_to for each in known if each.held_to and _overlaps(each, finding)]
    if ended and finding.held_to is not None:
        return
    if ended:  # late events say that it went on
        finding = replace(finding, held_from=max(ended), occasion=_occasion(max(ended)))
    life.open_alert(due.stored, finding, now)


def _overlaps(alert: Alert, finding: Finding) -> bool:
    is_before = alert.held_to is not None and alert.held_to < finding.held_from
    is_after = finding.held_to is not None and finding.held_to < alert.held_from
    return not (is_before or is_after)


def _occasion(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%MZ}"


def _finding(due: Due, episode: Episode) -> Finding:
    condition, value = due.condition, episode.value
    held_from = instant(condition, episode.start)
    until = instant(condition, value.at)
    currency = currency_used() if condition.measure is Measure.COST else ""
    # The calls of the window that the value is of.
    query = f"{parse(condition.query)} {range_query(until - condition.window, until)}".strip()
    return Finding(
        occasion=_occasion(held_from),
        severity=episode.severity,
        held_from=held_from,
        held_to=None if episode.end is None else instant(condition, episode.end),
        title=title(due.stored.name, condition, episode.severity, value, currency),
        query=query,
        value=value.value,
        compared_with=value.before,
        threshold=condition.threshold(episode.severity),
    )


def _by_last(due: Iterable[Due]) -> Iterator[tuple[datetime, list[Due]]]:
    groups: dict[datetime, list[Due]] = {}
    for each in due:
        groups.setdefault(instant(each.condition, each.last), []).append(each)
    yield from groups.items()
