"""The sections of a report about its calls, each from its members of the stored document. Pure."""

from datetime import datetime
from typing import Any

from audit.reports.layout import (
    Cell,
    Column,
    Section,
    Table,
    bad,
    limited,
    more,
    ms,
    numbers,
    tool_cell,
    with_rows,
)
from audit.reports.queries import Report
from audit.show import figures
from audit.show.figures import count, counted, share
from audit.show.reasons import GUARD_OUTCOMES
from config.instants import local, to_the_minute


def reliability(all_figures: dict[str, Any]) -> Section:
    """How many calls ran, and which failed."""
    own = all_figures["reliability"]
    tools = Table(
        "Tools, most failures and violations first",
        [
            Column("Tool"),
            *numbers("Calls", "Failed", "Error rate", "With violations", "p50", "p95"),
        ],
        [
            [
                tool_cell(one["tool_name"], one["tool_name"]),
                Cell(count(one["calls"])),
                bad(one["failed"], "failed"),
                Cell(share(one["error_rate"]), "" if one["failed"] else "dim"),
                bad(one["violating"], "violation"),
                Cell(ms(one["p50_ms"])),
                Cell(ms(one["p95_ms"])),
            ]
            for one in own["tools"]
        ],
        more(own["tool_count"], own["tools"], "tool"),
    )
    errors = Table(
        "Errors, most frequent first",
        [Column("Tool"), Column("Error type"), Column("Calls", True)],
        [
            [
                tool_cell(one["tool_name"], one["tool_name"]),
                Cell(one["error_type"] or "not reported", "" if one["error_type"] else "dim"),
                Cell(count(one["calls"]), "failed"),
            ]
            for one in own["errors"]
        ],
        more(own["error_count"], own["errors"], "kind"),
    )
    return Section(
        "reliability",
        "Volume and reliability",
        [
            ("Calls", Cell(count(all_figures["volume"]["calls"]))),
            ("Failed", bad(own["failed"], "failed")),
            ("Error rate", Cell(share(own["error_rate"]))),
            ("Tools", Cell(count(all_figures["volume"]["tools"]))),
        ],
        with_rows(tools, errors),
        "" if own["tools"] else "No calls ended in this range.",
    )


def violations(all_figures: dict[str, Any], report: Report) -> Section:
    """Schema violations by tool and path, and guard outcomes."""
    own = all_figures["violations"]
    kinds = Table(
        "Violations by tool and path, most frequent first",
        [
            *(Column("Tool"), Column("Side"), Column("Path"), Column("Code")),
            *numbers("Violations", "Calls", "Share of calls"),
            Column("First seen"),
        ],
        [
            [
                tool_cell(_versioned(one["tool_name"], one["tool_version"]), one["tool_name"]),
                Cell(one.get("side", "results")),  # older reports have results only
                Cell(one["path_pattern"], "mono"),
                Cell(one["code"], "mono"),
                Cell(count(one["violations"]), "violation"),
                Cell(count(one["calls"])),
                Cell(share(one["share"])),
                _first_seen(one, report),
            ]
            for one in own["kinds"]
        ],
        more(own["kind_count"], own["kinds"], "kind"),
    )
    treatments = Table(
        "Guard outcomes",
        [Column("Strategy"), Column("Outcome"), Column("Violations", True)],
        [
            [
                Cell(one["strategy"]),
                Cell(GUARD_OUTCOMES.get(one["outcome"], one["outcome"])),
                Cell(count(one["violations"])),
            ]
            for one in own["treatments"]
        ],
    )
    return Section(
        "violations",
        "Violations",
        [
            ("Violations of results", bad(own["violations"], "violation")),
            ("Violations of arguments", bad(own.get("of_arguments", 0), "violation")),
            ("Calls with violating results", bad(own["violating"], "violation")),
            ("Share of all calls", Cell(share(own["violation_rate"]))),
            ("New kinds", bad(own["new_count"], "violation")),
        ],
        with_rows(kinds, treatments),
        "" if own["kinds"] else "No schema violations.",
    )


def _first_seen(one: dict[str, Any], report: Report) -> Cell:
    first = datetime.fromisoformat(one["first_ever_at"])
    if first >= report.of.start:
        return Cell("new", "violation")
    return Cell(f"{local(first, report.of.zone):%Y-%m-%d}", "dim")


def unrun_calls(all_figures: dict[str, Any]) -> Section:
    """Calls that have decisions and did not run."""
    own = all_figures["unrun"]
    tools = Table(
        "By tool, most calls first",
        [
            Column("Tool"),
            *numbers("Asked for", "Refused", "Refusal rate", "Awaiting", "Approved"),
        ],
        [
            [
                tool_cell(one["tool_name"], one["tool_name"]),
                Cell(count(one["asked_for"])),
                bad(one["refused"], "violation"),
                Cell(share(one["refusal_rate"])),
                bad(one["awaiting"], "open"),
                Cell(count(one["approved"])),
            ]
            for one in own["tools"]
        ],
        more(own["tool_count"], own["tools"], "tool"),
    )
    return Section(
        "unrun",
        "Calls that did not run",
        [
            ("Calls asked for", Cell(count(own["asked_for"]))),
            ("Refused", bad(own["refused"], "violation")),
            ("Refusal rate", Cell(share(own["refusal_rate"]))),
            ("Awaiting approval", bad(own["awaiting"], "open")),
            ("Approved, not started", Cell(count(own["approved"]))),
        ],
        with_rows(tools),
        "Asked for: calls that started, and calls that did not run; rates are of these. No other"
        " figure has calls that did not run.",
    )


def latency(all_figures: dict[str, Any]) -> Section:
    """How long calls took and the tokens they used."""
    own, tokens = all_figures["latency"], all_figures["tokens"]
    versions = Table(
        "By tool and version, most calls first",
        [
            Column("Tool"),
            *numbers("Calls", "p50", "p90", "p95", "p99", "Tokens in", "Tokens out", "Cache hits"),
        ],
        [
            [
                tool_cell(_versioned(one["tool_name"], one["tool_version"]), one["tool_name"]),
                Cell(count(one["calls"])),
                *(Cell(ms(one[f"{name}_ms"])) for name in ("p50", "p90", "p95", "p99")),
                *(
                    Cell(figures.short_count(one[name]), "" if one[name] else "dim")
                    for name in ("prompt_tokens", "completion_tokens", "cache_hits")
                ),
            ]
            for one in own["versions"]
        ],
        more(own["version_count"], own["versions"], "version"),
    )
    return Section(
        "latency",
        "Latency and tokens",
        [
            *((name, Cell(ms(own[f"{name}_ms"]))) for name in ("p50", "p90", "p95", "p99")),
            ("Tokens in", Cell(count(tokens["prompt_tokens"]))),
            ("Tokens out", Cell(count(tokens["completion_tokens"]))),
            ("Cache hits", Cell(counted(tokens["cache_hits"], "call"))),
        ],
        with_rows(versions),
        "Percentiles have an error of at most 5 %. Counts are exact.",
    )


def open_executions(all_figures: dict[str, Any]) -> Section:
    """Calls that have not ended."""
    own = all_figures["open"]
    most = own["counted_up_to"]
    return Section(
        "open",
        "Open calls",
        [
            ("Started in the range", bad(own["started_in_range"], "open")),
            ("Open in total", limited(own["open"], most, "open")),
            ("Running", limited(own["running"], most, "")),
            ("Overdue", limited(own["overdue"], most, "open")),
            ("Presumed crashed", limited(own["crashed"], most, "failed")),
            ("Orphan ends", limited(own["orphan"], most, "violation")),
        ],
        note="All figures except the first are as of the report's creation, for calls of any age.",
    )


def repeats(all_figures: dict[str, Any], report: Report) -> Section:
    """Identical calls and loops."""
    own = all_figures["repeats"]
    numbered = [*numbers("Calls", "Failed", "Avoidable time", "Avoidable tokens")]

    def rows(kind: str) -> list[list[Cell]]:
        return [
            [
                tool_cell(one["tool_name"], one["tool_name"]),
                Cell(one["call_id"][:12], "mono"),
                Cell(one["trace_id"], "mono") if kind == "loop" else Cell(count(one["traces"])),
                Cell(count(one["calls"])),
                bad(one["failed"], "failed"),
                Cell(ms(one["wasted_ms"])),
                Cell(figures.short_count(one["wasted_tokens"])),
            ]
            for one in own["listed"]
            if one["kind"] == kind
        ]

    loops, repeats = rows("loop"), rows("repeat")
    notes = []
    if not own["is_all"]:
        since = to_the_minute(datetime.fromisoformat(own["since"]), report.of.zone)
        notes.append(f"Only calls since {since} are covered: the range has too many.")
    if own["polling_tools"]:
        notes.append(f"Excludes {counted(len(own['polling_tools']), 'polling tool')}.")
    if not own["repeated"]:
        notes.append("No repeated calls.")
    return Section(
        "repeats",
        "Repeats",
        [
            ("Repeated calls", Cell(count(own["repeated_calls"]))),
            ("Distinct calls", Cell(count(own["repeated"]))),
            ("Loops", bad(own["loops"], "violation")),
            ("Calls in loops", Cell(count(own["loop_calls"]))),
        ],
        with_rows(
            Table(
                "Loops: 3 or more identical calls in one trace",
                [Column("Tool"), Column("Call id"), Column("Trace"), *numbered],
                loops,
                more(own["loops"], loops, "loop"),
            ),
            Table(
                "Most frequent repeats",
                [Column("Tool"), Column("Call id"), Column("Traces", True), *numbered],
                repeats,
                more(own["repeated"], repeats, "call id"),
            ),
        ),
        " ".join(notes),
    )


def _versioned(tool_name: str, version: str | None) -> str:
    return f"{tool_name} {figures.short_version(version)}" if version else tool_name
