"""Violations: which values break their schema, where, since when, and the outcomes of guards."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple
from urllib.parse import quote_plus
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.events.findings import OUTCOME
from audit.exports.violations import FORMS, document
from audit.models import Note
from audit.pages.show.active_filters import active_filters
from audit.pages.show.choice import choice
from audit.pages.show.figures_file import figures_file
from audit.pages.show.range_bar import OF_THE_RANGE, invalid_range, range_bar, requested_range
from audit.pages.show.saved_views import opens_with
from audit.pages.show.texts import record_texts
from audit.pages.violations.chart import violations_chart
from audit.queries.call_query import quoted
from audit.queries.decisions import WORDS
from audit.queries.notes import notes_about_violations
from audit.queries.over_time import has_figures_before
from audit.queries.published import published_in
from audit.queries.violation_samples import samples
from audit.queries.violations import (
    RejectedCalls,
    Side,
    ViolationFilter,
    ViolationKind,
    Violations,
    violations,
    violations_before,
)
from audit.show import figures
from audit.show.charts import range_query
from audit.show.reasons import GUARD_OUTCOMES
from config.http.htmx import render_page
from config.http.ordering import Key, Table, in_order, requested_order, sorted_table
from tenants.access import TenantRequest, tenant_page
from tools_registry.models import ToolVersion
from tools_registry.versions import versions_named

KINDS_SHOWN = 50
SAMPLES_SHOWN = 10
REJECTED_SHOWN = 20
MISTAKES_SHOWN = 3
TOOLS_SHOWN, CODES_SHOWN = 14, 10
_SHADES = 8

OUTCOMES = {**WORDS, **GUARD_OUTCOMES, OUTCOME: "detected by the server"}
"""The outcomes of violations in words: what the guard did, or what was decided. Without either, the
server detected the violation."""

SIDES: dict[Side | str, str] = {"": "All", "arguments": "Arguments", "results": "Results"}
"""The sides that the page offers, in words, by value in its address."""
ORDERS: dict[str, Callable[[ViolationKind], Any]] = {
    "tool": lambda kind: kind.tool_name,
    "path": lambda kind: kind.path_pattern,
    "code": lambda kind: kind.code,
    "calls": lambda kind: kind.calls,
    "share": lambda kind: kind.share,
    "violations": lambda kind: kind.violations,
    "first": lambda kind: kind.first_ever_at,
    "last": lambda kind: kind.last_at,
}
"""The columns by which kinds are sorted."""
_REJECTED: Mapping[str, Key[RejectedCalls]] = {
    "tool": lambda one: one.tool_name,
    "rejected": lambda one: one.calls,
    "share": lambda one: one.share,
}
"""The columns by which versions with rejected calls are sorted; at first by such calls."""
FILTERS = {"tool": "Tool", "version": "Version", "path": "Path", "code": "Code"}


class TreatmentRow(NamedTuple):
    """What guards did about violations: a strategy with an outcome, and its share of all."""

    side: Side
    strategy: str
    outcome: str
    words: str
    """The outcome in words."""
    violations: int
    share: float


@dataclass(frozen=True, slots=True)
class Cell:
    """A tool's violations of one code: their number, and the cell's shade from 0 to 8."""

    tool: str
    code: str
    count: int
    shade: int
    address: str


class HeatRow(NamedTuple):
    """A tool's cells, one for each code."""

    tool: str
    address: str
    cells: list[Cell]


class HeatMap(NamedTuple):
    """Violations by tool and code. The most frequent come first."""

    codes: list[str]
    rows: list[HeatRow]


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """What agents get wrong about a version of a tool, beside the description that they had."""

    rejected: RejectedCalls
    mistakes: list[ViolationKind]
    """The most frequent ones."""
    more_mistakes: int
    version: ToolVersion | None
    """The registered version; None if the calls name none that is registered."""
    query: str
    """The query for its calls."""


class KindRow(NamedTuple):
    """A kind of violation as a row of the list."""

    kind: ViolationKind
    calls: str
    """The address of its calls."""
    apart: str
    """The address of what sets them apart; '' for those that did not run."""
    notes: Sequence[Note]
    """The newest notes about this kind of violation, whatever the version."""


@require_safe
@tenant_page()
def violation_list(request: TenantRequest) -> HttpResponseBase:
    """Show the violations of the URL's range by kind."""
    if default := opens_with(request, "violations"):
        return redirect(default)
    now = timezone.now()
    requested, wanted = requested_range(request, now), _wanted(request)
    if requested.problem:
        return invalid_range(request, requested, "violations/violation_list.html", "Violations")
    range_violations = violations(requested.range, wanted)
    within = range_query(requested.range.start, requested.range.end)
    order = requested_order(request, ORDERS, "violations")
    shown = in_order(range_violations.kinds, ORDERS, order)[:KINDS_SHOWN]
    # Without violations of arguments in the range, nothing about decisions is asked again.
    has_arguments = "arguments" in range_violations.by_side
    sampled = wanted if has_arguments else replace(wanted, side="results")
    latest = samples(requested.range, sampled, limit=SAMPLES_SHOWN) if shown else []
    record_texts(request, "violations", (one.received for one in latest))
    if shown and has_figures_before(requested.range.previous.start):
        range_violations.before = violations_before(requested.range, wanted)
    rejected = sorted_table(
        request,
        range_violations.rejected,
        _REJECTED,
        "rejected",
        "sort-rejected",
        most=REJECTED_SHOWN,
    )
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "range_violations": range_violations,
        "rows": kind_rows(shown, within, request.GET),
        "both_sides": not wanted.side,
        "order": order,
        "more_kinds": len(range_violations.kinds) - len(shown),
        "chart": violations_chart(
            range_violations, wanted, published_in(requested.range, wanted.tool)
        ).with_threshold(request.GET.get("line-violations", ""))
        if shown
        else None,
        "heat": heat_map(range_violations, request.GET),
        "rejected": Table(
            rejected_rows(request.tenant.id, rejected.rows, range_violations.kinds, within),
            rejected.order,
        ),
        "more_rejected": max(0, len(range_violations.rejected) - REJECTED_SHOWN),
        "sides": SIDES,
        "treatments": [
            TreatmentRow(
                side=one.side,
                strategy=one.strategy,
                outcome=one.outcome,
                words=_in_words(one.outcome),
                violations=one.violations,
                share=one.violations / range_violations.total,
            )
            for one in range_violations.treatments
        ],
        "samples": [replace(one, outcome=_in_words(one.outcome)) for one in latest],
        "rule_address": rule_address(wanted),
        "handoff_address": handoff_address(wanted) if range_violations.total else "",
        "filters": active_filters(wanted, FILTERS),
        "wanted": wanted,
        "outcome": _in_words(wanted.outcome) if wanted.outcome else wanted.outcome,
        "call_count": figures.count(sum(kind.calls for kind in range_violations.kinds)),
        "exports": tuple(FORMS),
    }
    return render_page(request, "violations/violation_list.html", "violations", context)


@require_safe
@tenant_page()
def violation_export(request: TenantRequest, kind: str) -> HttpResponse:
    """Export every kind of violation that the URL selects as NDJSON or CSV. It is recorded."""
    wanted = _wanted(request)
    return figures_file(
        request,
        kind,
        FORMS,
        lambda of: [document(one) for one in violations(of, wanted).kinds],
        of="violations",
        action="violation.export",
    )


def _wanted(request: TenantRequest) -> ViolationFilter:
    choice(request, "side", SIDES)
    return ViolationFilter.read(request.GET)


def rule_address(wanted: ViolationFilter) -> str:
    """Return the address of a new alert rule about these violations."""
    parameters = {"q": _calls_with(wanted), "measure": "violations"}
    return f"{reverse('alert_rule_new')}?{urlencode(parameters)}"


def handoff_address(wanted: ViolationFilter) -> str:
    """Return the address of the text for an agent about a kind of violation; '' for all kinds."""
    if not (wanted.tool and wanted.code):
        return ""
    return f"{reverse('query_handoff')}?{urlencode({'q': _calls_with(wanted)})}"


def _calls_with(wanted: ViolationFilter) -> str:
    """Return a query for the calls with these violations, at any time."""
    terms = [("tool", wanted.tool), ("version", wanted.version)]
    terms += [("violation", wanted.code), ("path", wanted.path)]
    return " ".join(f"{name}:{quoted(value)}" for name, value in terms if value)


def rejected_rows(
    tenant_id: UUID, shown: Sequence[RejectedCalls], kinds: Iterable[ViolationKind], within: str
) -> list[RejectedRow]:
    """Return versions with rejected calls as rows. `within` is the range's query."""
    named = versions_named(tenant_id, ((one.tool_name, one.tool_version) for one in shown))
    mistakes: dict[tuple[str, str], list[ViolationKind]] = {}
    for kind in kinds:
        if kind.side == "arguments":
            mistakes.setdefault((kind.tool_name, kind.tool_version), []).append(kind)
    return [
        RejectedRow(
            one,
            mistakes[key][:MISTAKES_SHOWN],
            max(0, len(mistakes[key]) - MISTAKES_SHOWN),
            named.get(key),
            f"{within} {version_query(*key)} decision:rejected-arguments",
        )
        for one in shown
        if (key := (one.tool_name, one.tool_version))
    ]


def kind_rows(
    kinds: Iterable[ViolationKind], within: str, params: Mapping[str, str]
) -> list[KindRow]:
    """Return the kinds as rows. `within` is the range's query, `params` the page's address.

    What links share is quoted once, here and in `heat_map`: 150 links whose members are quoted
    for each took a tenth of the page's time.
    """
    of_range = {name: params[name] for name in OF_THE_RANGE if name in params}
    calls = f"{reverse('call_list')}?q={quote_plus(f'{within} ')}"
    apart = f"{reverse('apart_page')}?{urlencode(of_range | {'q': ''})}"
    listed = list(kinds)
    notes = notes_about_violations(kind.tool_name for kind in listed) if listed else {}
    rows = []
    for kind in listed:
        query = quote_plus(kind_query(kind))
        apart_address = f"{apart}{query}" if kind.side == "results" else ""
        about = notes.get((kind.tool_name, kind.code, kind.path_pattern), ())
        rows.append(KindRow(kind, f"{calls}{query}", apart_address, about))
    return rows


def version_query(tool: str, version: str) -> str:
    """Return the terms of a query for the calls of a version of a tool, '' for any version."""
    terms = [f"tool:{quoted(tool)}", f"version:{quoted(version)}" if version else ""]
    return " ".join(filter(None, terms))


def kind_query(kind: ViolationKind) -> str:
    """Return the terms of a query for the calls with this kind of violation."""
    decided = "decision:rejected-arguments " if kind.side == "arguments" else ""
    place = f"violation:{quoted(kind.code)} path:{quoted(kind.path_pattern)}"
    return f"{decided}{version_query(kind.tool_name, kind.tool_version)} {place}"


def _in_words(outcome: str) -> str:
    return OUTCOMES.get(outcome, outcome)


def heat_map(range_violations: Violations, params: QueryDict) -> HeatMap:
    """Return the codes as columns, and each tool's cells. The most frequent come first.

    Their addresses are that of the page, which has `params`, with the tool, and the code.
    """
    by_tool: dict[str, int] = {}
    by_code: dict[str, int] = {}
    for (tool, code), count in range_violations.cells.items():
        by_tool[tool] = by_tool.get(tool, 0) + count
        by_code[code] = by_code.get(code, 0) + count
    tools = sorted(by_tool, key=lambda tool: (-by_tool[tool], tool))[:TOOLS_SHOWN]
    codes = sorted(by_code, key=lambda code: (-by_code[code], code))[:CODES_SHOWN]
    most = max(range_violations.cells.values(), default=1)
    of_code = {code: urlencode({"code": code}) for code in codes}
    of_tool, of_cell = _without(params, "tool"), _without(params, "tool", "code")
    rows = []
    for tool in tools:
        address = urlencode({"tool": tool})
        cells = []
        for code in codes:
            count = range_violations.cells.get((tool, code), 0)
            shade = max(1, round(_SHADES * sqrt(count / most))) if count else 0
            cells.append(Cell(tool, code, count, shade, f"{of_cell}{address}&{of_code[code]}"))
        rows.append(HeatRow(tool, f"{of_tool}{address}", cells))
    return HeatMap(codes, rows)


def _without(params: QueryDict, *names: str) -> str:
    """Return the page's address without these members, to which a link appends its own."""
    kept = params.copy()
    for name in names:
        kept.pop(name, None)
    return f"?{kept.urlencode()}&" if kept else "?"
