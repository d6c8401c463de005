"""Alerts over the API: rules as JSON, the list of alerts, and their answers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field, ValidationError

from audit.alerts import life
from audit.alerts.rules import NAME_MAX, EventCondition, Rule, WindowCondition
from audit.alerts.stored import (
    RULES_MAX,
    TooManyRulesError,
    UnknownChannelError,
    all_rules,
    channel_names,
    delete_rule,
    mute_rule,
    rule_of,
    save_rule,
)
from audit.models import Alert, AlertRule
from audit.pages.show.ranges import ListRangeParams
from audit.pages.show.router import router
from audit.queries.alerts import AlertFilter, alert_page
from audit.queries.cursor import parse_cursor
from config.http.problems import ProblemError
from tenants.actions import storable_text
from tenants.api_acts import Act, Body, Stripped, acts
from tenants.api_reads import Answer, ListParams, Page, paged, reads, seal, unseal
from tenants.models import Scope
from tenants.scope import current_tenant_id

MUTE_MAX_MINUTES = 30 * 24 * 60


class OneRule(Answer):
    """A rule, and how far it was judged."""

    id: UUID
    name: str
    condition: WindowCondition | EventCondition
    is_enabled: bool
    channels: list[str]
    """Names of the channels that its alerts are sent to; empty: all of the tenant."""
    repeat_minutes: int
    """Minutes until the message of an open alert is repeated; 0: never."""
    changed_at: datetime
    changed_by: str
    muted_until: datetime | None
    judged_to: datetime
    """The last instant that was judged."""
    problem: str
    """Why it could not be judged the last time; empty if it could."""


class RuleSet(Body):
    """Rules to be saved, each under its name."""

    rules: list[dict[str, Any]] = Field(min_length=1, max_length=RULES_MAX)
    """Each with `name`, `condition`, `is_enabled`, `channels` and `repeat_minutes`, as they are
    listed.
    """


class Mute(Body):
    """For how long nobody is notified, and why."""

    minutes: int = Field(ge=0, le=MUTE_MAX_MINUTES)
    """0 ends it."""
    reason: Annotated[Stripped, Field(min_length=1, max_length=life.NOTE_MAX)]
    """It stays in the ledger."""


class RuleList(Page[OneRule]):
    """All rules of the tenant, by name."""

    OLD_NAME = "rules"


class AlertParams(ListRangeParams):
    """Which alerts."""

    state: Literal["unresolved", "all"] = "unresolved"
    """Those that nobody has resolved, or all."""
    rule: str = Field("", max_length=NAME_MAX)
    """Only alerts of the rule with this name."""


class OneAlert(Answer):
    """A time during which a rule fired, and what people did about it."""

    id: UUID
    rule: str
    severity: Literal["warning", "alert"]
    state: Literal["open", "acknowledged", "resolved"]
    title: str
    query: str
    """Of its calls, as for `/api/v1/calls`."""
    held_from: datetime
    held_to: datetime | None
    """The first instant at which it held no longer; null while it holds."""
    opened_at: datetime
    is_late: bool
    is_muted: bool
    notified_at: datetime | None
    """When a message that it is open was last sent to channels; null if none was."""
    value: float | None
    compared_with: float | None
    threshold: float | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledge_note: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_note: str | None
    uncounted: int
    """How often the rule fired again within the hour, without an alert of its own."""


class AlertList(Page[OneAlert]):
    """Alerts by when they began, newest first."""

    OLD_NAME = "alerts"


class Note(Body):
    """What is said about an alert."""

    note: Annotated[Stripped, Field(min_length=1, max_length=life.NOTE_MAX)]
    """It stays in the ledger."""


@reads(router, "/alert-rules", RuleList, tag="alerts", problems=("cursor", "limit"))
def list_alert_rules(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the rules of the tenant. PUT takes `name` to `repeat_minutes`."""
    return _rules(params)


@acts(
    router,
    "PUT",
    "/alert-rules",
    RuleList,
    scope=Scope.OPERATE,
    tag="alerts",
    body=RuleSet,
)
def save_alert_rules(act: Act) -> dict[str, Any]:
    """Create each of these rules, or replace the rule of its name: rules as code.

    A rule that is like this already stays as it is. Others stay, too. If one is invalid, nothing
    is saved. Returns all rules of the tenant.
    """
    wanted = [read_rule(members) for members in act.read(RuleSet).rules]
    now = timezone.now()
    for rule in wanted:
        try:
            save_rule(act.tenant, act.actor, rule, now)
        except (TooManyRulesError, UnknownChannelError) as error:
            raise ProblemError("invalid", str(error), parameter="rules") from error
    return _rules(ListParams(limit=RULES_MAX))


@acts(
    router,
    "DELETE",
    "/alert-rules/{uuid:rule_id}",
    OneRule,
    scope=Scope.OPERATE,
    tag="alerts",
    problems=("not_found",),
)
def delete_alert_rule(act: Act, rule_id: Path[UUID]) -> dict[str, Any]:
    """Delete a rule and return it. Its alerts stay; those that are not resolved are resolved."""
    stored = _stored(rule_id)
    members = _rule(stored, channel_names())
    delete_rule(act.tenant, act.actor, stored, timezone.now())
    return members


@acts(
    router,
    "POST",
    "/alert-rules/{uuid:rule_id}/mute",
    OneRule,
    scope=Scope.OPERATE,
    tag="alerts",
    body=Mute,
    problems=("not_found",),
)
def mute_alert_rule(act: Act, rule_id: Path[UUID]) -> dict[str, Any]:
    """Tell nobody about alerts of a rule for a while, or end that."""
    stored = _stored(rule_id)  # first: another tenant's is a 404, whatever the body is
    wanted = act.read(Mute)
    mute_rule(act.tenant, act.actor, stored, wanted.minutes, wanted.reason, timezone.now())
    return _rule(_stored(rule_id), channel_names())


@reads(router, "/alerts", AlertList, tag="alerts", problems=("range", "cursor", "limit"))
def list_alerts(request: HttpRequest, params: Query[AlertParams]) -> dict[str, Any]:
    """List alerts, newest first. The range is of when they began."""
    before = unseal("alerts", params.cursor, lambda place: parse_cursor("\n".join(place), UUID))
    wanted = AlertFilter(
        params.state == "unresolved",
        rule_name=storable_text(params.rule),
        **params.read_span()._asdict(),
    )
    page = alert_page(wanted, before=before, size=params.limit)
    return {
        "items": [_alert(one) for one in page.alerts],
        "next": page.older and seal("alerts", page.older),
    }


@reads(router, "/alerts/{uuid:alert_id}", OneAlert, tag="alerts", problems=("not_found",))
def read_alert(request: HttpRequest, alert_id: Path[UUID]) -> dict[str, Any]:
    """Get one alert."""
    return _alert(_one_alert(alert_id))


@acts(
    router,
    "POST",
    "/alerts/{uuid:alert_id}/acknowledge",
    OneAlert,
    scope=Scope.OPERATE,
    tag="alerts",
    body=Note,
    problems=("not_found",),
)
def acknowledge_alert(act: Act, alert_id: Path[UUID]) -> dict[str, Any]:
    """Take care of an alert, with a note. An alert that is not open stays as it is."""
    alert = _one_alert(alert_id)
    life.acknowledge(alert, act.actor, act.read(Note).note, timezone.now())
    return _alert(alert)


@acts(
    router,
    "POST",
    "/alerts/{uuid:alert_id}/resolve",
    OneAlert,
    scope=Scope.OPERATE,
    tag="alerts",
    body=Note,
    problems=("not_found",),
)
def resolve_alert(act: Act, alert_id: Path[UUID]) -> dict[str, Any]:
    """Close an alert, with a note. A resolved alert stays as it is."""
    alert = _one_alert(alert_id)
    life.resolve(alert, act.actor, act.read(Note).note, timezone.now())
    return _alert(alert)


def read_rule(members: dict[str, Any]) -> Rule:
    """The rule that a document is. Raises ProblemError."""
    try:
        return Rule.model_validate(members)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in ("rules", *first["loc"]))
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise ProblemError("malformed", f"{where}: {message}.") from error


def _stored(rule_id: UUID) -> AlertRule:
    rules = AlertRule.objects.for_tenant(current_tenant_id()).select_for_update()
    stored = rules.filter(id=rule_id).first()
    if stored is None:
        raise ProblemError("not_found", "Alert rule not found.")
    return stored


def _one_alert(alert_id: UUID) -> Alert:
    alert = life.find_alert(alert_id)
    if alert is None:
        raise ProblemError("not_found", "Alert not found.")
    return alert


def _rules(params: ListParams) -> dict[str, Any]:
    channels = channel_names()
    shown, after = paged("alert-rules", all_rules(), params, lambda rule: rule.name)
    return {"items": [_rule(one, channels) for one in shown], "next": after}


def _rule(stored: AlertRule, channels: Mapping[UUID, str]) -> dict[str, Any]:
    rule = rule_of(stored, channels).model_dump(mode="json")
    names = ("id", "changed_at", "changed_by", "muted_until", "judged_to", "problem")
    return rule | {name: _plain(getattr(stored, name)) for name in names}


def _alert(alert: Alert) -> dict[str, Any]:
    names = OneAlert.model_fields.keys() - {"rule"}
    members = {name: _plain(getattr(alert, name)) for name in names}
    return members | {"rule": alert.rule_name}


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
