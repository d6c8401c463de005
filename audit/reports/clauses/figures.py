"""The single figures of a clause report, each of a stored report. Pure but for addresses.

A figure has a value for programs, a text for people, and the page that shows what is behind it, in
the report's range where that page has one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from audit.reports.layout import ms
from audit.reports.queries import Report
from audit.show.figures import count, counted, share
from config.instants import iso, to_the_minute

type Value = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a report."""

    id: str
    name: str
    value: Value
    """A count, a share from 0 to 1, milliseconds, days, or an instant in RFC 3339."""
    text: str
    page: str
    """The path of the page behind it, with its query; '' if there is none."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a figure is made: its name, value, words for the value, and page."""

    name: str
    value: Callable[[dict[str, Any]], Value]
    text: Callable[[Report], str] | None = None
    page: Callable[[Report], str] | None = None


def figure(report: Report, pk: str) -> Figure:
    """The figure of this id of a report with `record`."""
    rule = _RULES[pk]
    value = rule.value(report.figures)
    text = _plain(value) if rule.text is None else rule.text(report)
    page = "" if rule.page is None else rule.page(report)
    return Figure(pk, rule.name, value, text, page)


def _plain(value: Value) -> str:
    return "none" if value is None else count(int(value)) if isinstance(value, int) else str(value)


def _at(*path: str) -> Callable[[dict[str, Any]], Value]:
    """The value of a member of the figures."""

    def read(figures: dict[str, Any]) -> Value:
        member: Any = figures
        for name in path:
            member = member[name]
        value: Value = member
        return value

    return read


def _started(figures: dict[str, Any]) -> int:
    return int(figures["volume"]["calls"] + figures["open"]["started_in_range"])


def _recorded_whole(figures: dict[str, Any]) -> float | None:
    """The share of calls with both a start and an end."""
    started = _started(figures)
    whole = figures["volume"]["calls"] - figures["record"]["orphans"]
    return max(0, whole) / started if started else None


def _unsigned(figures: dict[str, Any]) -> int:
    ledger = figures["record"]["ledger"]
    return int(ledger["size"] - (ledger["signed_size"] or 0))


def _days(*path: str, without: str = "without a limit") -> Callable[[Report], str]:
    def words(report: Report) -> str:
        days = _at(*path)(report.figures)
        return without if days is None else counted(int(days), "day")

    return words


def _moment(*path: str) -> Callable[[Report], str]:
    def words(report: Report) -> str:
        text = _at(*path)(report.figures)
        if text is None:
            return "none"
        return to_the_minute(datetime.fromisoformat(str(text)), report.of.zone)

    return words


def _share(value: Callable[[dict[str, Any]], Value]) -> Callable[[Report], str]:
    def words(report: Report) -> str:
        number = value(report.figures)
        return "no calls" if number is None else share(float(number))

    return words


def _duration(*path: str) -> Callable[[Report], str]:
    def words(report: Report) -> str:
        number = _at(*path)(report.figures)
        return "nobody answered" if number is None else f"median {ms(float(number))}"

    return words


def _signed(report: Report) -> str:
    ledger = report.figures["record"]["ledger"]
    if ledger["signed_at"] is None:
        return "not signed yet"
    at = to_the_minute(datetime.fromisoformat(ledger["signed_at"]), report.of.zone)
    return f"{count(ledger['signed_size'])} entries, {at}"


def _checked(report: Report) -> str:
    ledger = report.figures["record"]["ledger"]
    if ledger["checked_at"] is None:
        return "never"
    at = to_the_minute(datetime.fromisoformat(ledger["checked_at"]), report.of.zone)
    return f"{at}, {counted(ledger['findings'], 'finding')}"


def _witnessed(report: Report) -> str:
    own = report.figures["record"]["witnesses"]
    if not own["named"]:
        return "no witnesses"
    return f"{counted(own['signed'], 'signature')}, {own['needed']} of {own['named']} needed"


def _calls(term: str = "") -> Callable[[Report], str]:
    def address(report: Report) -> str:
        query = f"{term} {report.query}".strip()
        return f"{reverse('call_list')}?{urlencode({'q': query})}"

    return address


def _ranged(route: str) -> Callable[[Report], str]:
    def address(report: Report) -> str:
        times = {"from": iso(report.of.start), "to": iso(report.of.end)}
        return f"{reverse(route)}?{urlencode(times)}"

    return address


def _page(route: str, **query: str) -> Callable[[Report], str]:
    def address(_: Report) -> str:
        return reverse(route) + (f"?{urlencode(query)}" if query else "")

    return address


_RULES: Final = {
    "started": _Rule("Calls that started", _started, page=_calls()),
    "calls": _Rule("Calls that ended", _at("volume", "calls"), page=_calls()),
    "recorded_whole": _Rule(
        "Share with start and end", _recorded_whole, _share(_recorded_whole), _calls()
    ),
    "open": _Rule("Without an end", _at("open", "started_in_range"), page=_calls("state:open")),
    "producers": _Rule("Producers", _at("completeness", "producers")),
    "lost": _Rule("Events declared as dropped", _at("completeness", "lost")),
    "missing": _Rule("Missing sequence numbers", _at("completeness", "missing")),
    "rejected": _Rule(
        "Rejected events waiting", _at("completeness", "inbox"), page=_page("inbox_list")
    ),
    "failed": _Rule("Failed calls", _at("reliability", "failed"), page=_calls("state:failed")),
    "violating": _Rule(
        "Calls that broke a schema",
        _at("violations", "violating"),
        page=_ranged("violation_list"),
    ),
    "not_run": _Rule(
        "Calls refused before they ran", _at("unrun", "refused"), page=_calls("state:refused")
    ),
    "agents": _Rule("Agents", _at("callers", "agent_count"), page=_ranged("agent_list")),
    "environments": _Rule("Environments", _at("callers", "environment_count")),
    "published": _Rule(
        "Versions of tools published", _at("registry", "published"), page=_page("tool_list")
    ),
    "unapproved": _Rule(
        "Definitions waiting for approval",
        _at("record", "counts", "unapproved"),
        page=_page("definition_list"),
    ),
    "definition_changes": _Rule(
        "Definitions first seen or changed",
        _at("record", "counts", "definition_changes"),
        page=_page("definition_list"),
    ),
    "rules": _Rule(
        "Alert rules that watch",
        _at("record", "counts", "rules"),
        page=_page("alert_rule_list"),
    ),
    "alerts": _Rule(
        "Alerts and warnings", _at("alerts", "fired"), page=_page("alert_list", state="all")
    ),
    "acknowledged": _Rule("Acknowledged", _at("alerts", "acknowledged")),
    "unresolved": _Rule("Not resolved", _at("alerts", "unresolved"), page=_page("alert_list")),
    "answered_within": _Rule(
        "Time until a person answered",
        _at("record", "alerts", "answered_p50_ms"),
        _duration("record", "alerts", "answered_p50_ms"),
    ),
    "notified": _Rule("Messages delivered", _at("record", "alerts", "delivered")),
    "not_notified": _Rule("Messages not delivered", _at("record", "alerts", "not_delivered")),
    "streams": _Rule(
        "Streams to SIEMs", _at("record", "counts", "streams"), page=_page("stream_list")
    ),
    "requests": _Rule(
        "Approvals requested",
        _at("record", "oversight", "requests"),
        page=_ranged("approval_list"),
    ),
    "approved": _Rule(
        "Approved", _at("record", "oversight", "approved"), page=_ranged("approval_list")
    ),
    "refused": _Rule("Refused", _at("record", "oversight", "refused")),
    "self_approved": _Rule("Approved for oneself", _at("record", "oversight", "self_approved")),
    "deciding_people": _Rule("People who decided", _at("record", "oversight", "people")),
    "waited": _Rule(
        "Time until an answer",
        _at("record", "oversight", "waited_p50_ms"),
        _duration("record", "oversight", "waited_p50_ms"),
    ),
    "floor_days": _Rule(
        "Retention floor",
        _at("record", "retention", "floor_days"),
        _days("record", "retention", "floor_days", without="none"),
        _page("floor_page"),
    ),
    "payload_days": _Rule(
        "Payloads are kept for",
        _at("record", "retention", "payload_days"),
        _days("record", "retention", "payload_days"),
        _page("tenant_settings"),
    ),
    "index_days": _Rule(
        "Calls are kept for",
        _at("record", "retention", "index_days"),
        _days("record", "retention", "index_days"),
        _page("tenant_settings"),
    ),
    "oldest_payload": _Rule(
        "Oldest payload not held",
        _at("record", "retention", "oldest_payload_at"),
        _moment("record", "retention", "oldest_payload_at"),
    ),
    "oldest_call": _Rule("First day with calls", _at("record", "retention", "oldest_call_on")),
    "held": _Rule(
        "Legal holds in force", _at("record", "counts", "holds"), page=_page("hold_list")
    ),
    "holds_set": _Rule(
        "Legal holds set", _at("record", "counts", "holds_set"), page=_page("hold_list")
    ),
    "erased_calls": _Rule(
        "Calls erased on request",
        _at("record", "counts", "erased_calls"),
        page=_page("erasure_list"),
    ),
    "incidents": _Rule(
        "Incidents", _at("record", "counts", "incidents"), page=_page("incident_list")
    ),
    "samples": _Rule(
        "Samples signed by two", _at("record", "counts", "samples"), page=_page("sample_list")
    ),
    "sampled_calls": _Rule("Calls that they judged", _at("record", "counts", "sampled_calls")),
    "payload_access": _Rule(
        "Times that payloads were shown",
        _at("record", "access", "acts"),
        page=_page("action_list", verb="call."),
    ),
    "people_with_access": _Rule(
        "People and programs who saw some", _at("record", "access", "people")
    ),
    "evidence": _Rule(
        "Evidence bundles exported",
        lambda figures: figures["record"]["access"]["by_verb"].get("evidence.export", 0),
        page=_page("action_list", verb="evidence."),
    ),
    "signed": _Rule(
        "Last signed checkpoint",
        _at("record", "ledger", "signed_size"),
        _signed,
        _page("ledger_page"),
    ),
    "unsigned": _Rule("Entries not signed yet", _unsigned, page=_page("ledger_page")),
    "checked": _Rule(
        "Last check of the whole ledger",
        _at("record", "ledger", "checked_at"),
        _checked,
        _page("ledger_page"),
    ),
    "witnessed": _Rule(
        "Signatures of witnesses",
        _at("record", "witnesses", "signed"),
        _witnessed,
        _page("ledger_page"),
    ),
}
NAMES: Final = frozenset(_RULES)
"""The ids of all figures."""
