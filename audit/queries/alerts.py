"""The list of alerts, and how many of each rule nobody has resolved."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from audit.models import Alert, AlertState
from audit.queries.call_filter import Text
from audit.queries.call_query import parse
from audit.queries.cursor import Cursor
from audit.queries.time_range import TimeRange
from audit.sql.run import rows, rows_prepared
from tenants.scope import current_tenant_id

MARKED_MAX = 100
"""Alerts that are marked on the charts of a page."""


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Which alerts: those that are not resolved, or all; of one rule, or of all; that began
    between two instants."""

    only_unresolved: bool = False
    rule_id: UUID | None = None
    rule_name: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertPage:
    """A page, newest first, and the cursor of the next one."""

    alerts: list[Alert]
    older: Cursor[UUID] | None


def alert_page(
    wanted: AlertFilter, *, before: Cursor[UUID] | None = None, size: int = 50
) -> AlertPage:
    """Alerts by when they began, newest first. One query."""
    alerts = Alert.objects.for_tenant(current_tenant_id())
    if wanted.only_unresolved:
        alerts = alerts.exclude(state=AlertState.RESOLVED)
    if wanted.rule_id is not None:
        alerts = alerts.filter(rule_id=wanted.rule_id)
    if wanted.rule_name:
        alerts = alerts.filter(rule_name=wanted.rule_name)
    if wanted.since is not None:
        alerts = alerts.filter(held_from__gte=wanted.since)
    if wanted.until is not None:
        alerts = alerts.filter(held_from__lt=wanted.until)
    if before is not None:
        alerts = alerts.filter(
            Q(held_from__lt=before.at) | Q(held_from=before.at, id__lt=before.id)
        )
    listed = list(alerts.order_by("-held_from", "-id")[: size + 1])
    shown = listed[:size]
    older = Cursor(shown[-1].held_from, shown[-1].id) if len(listed) > size else None
    return AlertPage(shown, older)


@dataclass(frozen=True, slots=True)
class Fired:
    """That an alert began, for a mark on a chart."""

    id: UUID
    at: datetime
    title: str
    severity: str
    query: str
    watches: str
    """The measure or the kind of event of its rule; '' if the rule was deleted."""


def fired_in(of: TimeRange, tool: str | None = None) -> list[Fired]:
    """The newest alerts that began in a range, oldest first; with a tool, those whose queries
    name it. One statement, planned once.
    """
    parameters = {"start": of.start, "end": of.end, "limit": MARKED_MAX}
    fired = [Fired(*row) for row in reversed(rows_prepared("alerts_fired_in", parameters))]
    if tool is None:
        return fired
    return [one for one in fired if parse(one.query).wanted.tool == Text(tool)]


@dataclass(frozen=True, slots=True)
class AlertCounts:
    """The alerts of a range, of one rule or of all."""

    fired: int = 0
    """How often rules fired, with the times that opened no alert of their own."""
    alerts: int = 0
    """Those that are no warnings."""
    muted: int = 0
    acknowledged: int = 0
    unresolved: int = 0


def alerts_of(of: TimeRange, *, limit: int) -> tuple[dict[str, AlertCounts], int, AlertCounts]:
    """The alerts that began in a range, by the names of the rules that fired most often; how many
    rules fired; and the sums of all. One statement.
    """
    listed = rows("alerts_of_range", {"start": of.start, "end": of.end, "limit": limit})
    if not listed:
        return {}, 0, AlertCounts()
    by_rule = {row[0]: AlertCounts(*row[1:6]) for row in listed}
    return by_rule, listed[0][6], AlertCounts(*listed[0][7:])


def unresolved_by_rule() -> dict[UUID, int]:
    """How many alerts nobody has resolved, by rule. One statement."""
    return {rule: int(number) for rule, number in rows("alerts_unresolved_by_rule", {})}
