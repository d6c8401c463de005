"""The sections of a report, each from its members of the stored document. Pure."""

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
    with_rows,
)
from audit.reports.queries import Report
from audit.show import figures
from audit.show.figures import count, counted, share
from config.instants import local, to_the_minute


def reliability(found: dict[str, Any]) -> Section:
    """How many calls ran, and which failed."""
    own = found["reliability"]
    tools = Table(
        "Tools, most failed and violating calls first",
        [Column("Tool"), *numbers("Calls", "Failed", "Error rate", "Break schema", "p50", "p95")],
        [
            [
                Cell(one["tool_name"]),
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
        "Errors, the most frequent first",
        [Column("Tool"), Column("Error type"), Column("Calls", True)],
        [
            [
                Cell(one["tool_name"]),
                Cell(one["error_type"] or "none given", "" if one["error_type"] else "dim"),
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
            ("Calls", Cell(count(found["volume"]["calls"]))),
            ("Failed", bad(own["failed"], "failed")),
            ("Error rate", Cell(share(own["error_rate"]))),
            ("Tools", Cell(count(found["volume"]["tools"]))),
        ],
        with_rows(tools, errors),
        "" if own["tools"] else "No call ended in this range.",
    )


def violations(found: dict[str, Any], report: Report) -> Section:
    """Schema violations by tool and path, and guard outcomes."""
    own = found["violations"]
    kinds = Table(
        "What breaks where, the most frequent first",
        [
            *(Column("Tool"), Column("Path"), Column("Code")),
            *numbers("Violations", "Calls", "Of its calls"),
            Column("First seen"),
        ],
        [
            [
                Cell(_versioned(one["tool_name"], one["tool_version"])),
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
        "What guards made of them",
        [Column("Strategy"), Column("Outcome"), Column("Violations", True)],
        [
            [Cell(one["strategy"]), Cell(one["outcome"]), Cell(count(one["violations"]))]
            for one in own["treatments"]
        ],
    )
    return Section(
        "violations",
        "Violations",
        [
            ("Violations", bad(own["violations"], "violation")),
            ("Calls that break their schema", bad(own["violating"], "violation")),
            ("Of all calls", Cell(share(own["violation_rate"]))),
            ("Kinds never seen before", bad(own["new_count"], "violation")),
        ],
        with_rows(kinds, treatments),
        "" if own["kinds"] else "Every output kept its schema.",
    )


def _first_seen(one: dict[str, Any], report: Report) -> Cell:
    first = _instant(one["first_ever_at"])
    if first >= report.of.start:
        return Cell("new", "violation")
    return Cell(f"{local(first, report.of.zone):%Y-%m-%d}", "dim")


def latency(found: dict[str, Any]) -> Section:
    """How long calls took and the tokens they used."""
    own, tokens = found["latency"], found["tokens"]
    versions = Table(
        "By tool and version, the most frequent first",
        [
            Column("Tool"),
            *numbers("Calls", "p50", "p90", "p95", "p99", "Tokens in", "Tokens out", "Cached"),
        ],
        [
            [
                Cell(_versioned(one["tool_name"], one["tool_version"])),
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
            ("Answered by a cache", Cell(counted(tokens["cache_hits"], "call"))),
        ],
        with_rows(versions),
        "Percentiles are off by at most 5 %; counts are exact.",
    )


def open_executions(found: dict[str, Any]) -> Section:
    """Calls that have not ended."""
    own = found["open"]
    most = own["counted_up_to"]
    return Section(
        "open",
        "Open executions",
        [
            ("Started in the range, not ended", bad(own["started_in_range"], "open")),
            ("Open in all", limited(own["open"], most, "open")),
            ("Running", limited(own["running"], most, "")),
            ("Overdue", limited(own["overdue"], most, "open")),
            ("Presumed crashed", limited(own["crashed"], most, "failed")),
            ("Ends without a start", limited(own["orphan"], most, "violation")),
        ],
        note="All but the first are as of when this report was made, whenever calls started.",
    )


def repeats(found: dict[str, Any], report: Report) -> Section:
    """Identical calls and loops."""
    own = found["repeats"]
    numbered = [*numbers("Calls", "Failed", "Time beyond the first", "Tokens")]

    def rows(kind: str) -> list[list[Cell]]:
        return [
            [
                Cell(one["tool_name"]),
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
        since = to_the_minute(_instant(own["since"]), report.of.zone)
        notes.append(f"Of the newest calls, those since {since}: the range holds too many.")
    if own["polling_tools"]:
        notes.append(f"Without {counted(len(own['polling_tools']), 'tool')} meant to poll.")
    if not own["repeated"]:
        notes.append("No call was made twice.")
    return Section(
        "repeats",
        "Repeats",
        [
            ("Repeated calls", Cell(count(own["repeated_calls"]))),
            ("Different ones among them", Cell(count(own["repeated"]))),
            ("Loops", bad(own["loops"], "violation")),
            ("Calls in loops", Cell(count(own["loop_calls"]))),
        ],
        with_rows(
            Table(
                "Loops: 3 or more in one trace",
                [Column("Tool"), Column("Call id"), Column("Trace"), *numbered],
                loops,
                more(own["loops"], loops, "loop"),
            ),
            Table(
                "The most frequent",
                [Column("Tool"), Column("Call id"), Column("Traces", True), *numbered],
                repeats,
                more(own["repeated"], repeats, "call id"),
            ),
        ),
        " ".join(notes),
    )


def registry(found: dict[str, Any], report: Report) -> Section:
    """Tool versions that were published."""
    own = found["registry"]
    table = Table(
        "Published, the newest first",
        [Column("Tool"), Column("Version"), Column("Digest"), Column("At"), Column("By")],
        [
            [
                Cell(one["tool_name"]),
                Cell(f"v{one['number']}" + (", new tool" if one["number"] == 1 else "")),
                Cell(one["digest"].removeprefix("sha256:")[:12], "mono"),
                Cell(to_the_minute(_instant(one["at"]), report.of.zone)),
                Cell(one["by"] or f"key {one['by_key'] or '—'}", "" if one["by"] else "dim"),
            ]
            for one in own["versions"]
        ],
        more(own["published"], own["versions"], "version"),
    )
    return Section(
        "registry",
        "Registry changes",
        [
            ("Versions published", Cell(count(own["published"]))),
            ("Of new tools", Cell(count(own["new_tools"]))),
        ],
        with_rows(table),
        "" if own["versions"] else "No tool version was published.",
    )


def completeness(found: dict[str, Any], report: Report) -> Section:
    """Whether events were lost."""
    own, zone = found["completeness"], report.of.zone
    gaps = Table(
        "Declared gaps, by reason",
        [Column("Reason"), Column("Events lost", True), Column("Producers", True)],
        [
            [
                Cell(gap["reason"]),
                Cell(count(gap["lost"]), "violation"),
                Cell(count(gap["producers"])),
            ]
            for gap in own["gaps"]
        ],
    )
    producers = Table(
        "Producers that are silent or miss something",
        [
            *(Column("Producer"), Column("Last heard")),
            *numbers("Numbers missing", "Given up"),
        ],
        [
            [
                Cell(one["producer_id"], "mono"),
                Cell(to_the_minute(_instant(one["last_heard_at"]), zone)),
                bad(one["missing"], "violation"),
                bad(one["given_up"], "violation"),
            ]
            for one in own["listed"]
        ],
    )
    return Section(
        "completeness",
        "Completeness",
        [
            ("Declared lost", bad(own["lost"], "violation")),
            ("Numbers missing", bad(own["missing"], "violation")),
            ("Refused lines waiting", limited(own["inbox"], 1000, "violation")),
            ("Producers heard since it began", Cell(count(own["producers"]))),
            ("Of them silent for 15 min", Cell(count(own["silent"]))),
        ],
        with_rows(gaps, producers),
        "Gaps are of the range; the rest is as of when this report was made.",
    )


def exports(found: dict[str, Any], report: Report) -> Section:
    """Who exported what."""
    own = found["exports"]
    table = Table(
        "Exports, the newest first",
        [Column("Who"), Column("What"), Column("At"), Column("Asked for", is_wide=True)],
        [
            [
                Cell(one["user"]),
                Cell(f"{one['what']}s as {one['form'].upper()}"),
                Cell(to_the_minute(_instant(one["at"]), report.of.zone)),
                Cell(one["query"] or "everything", "mono" if one["query"] else "dim"),
            ]
            for one in own["listed"]
        ],
        more(own["exports"], own["listed"], "export"),
    )
    return Section(
        "exports",
        "Who exported what",
        [("Exports", Cell(count(own["exports"])))],
        with_rows(table),
        "" if own["listed"] else "Nobody exported anything.",
    )


def _versioned(tool_name: str, version: str | None) -> str:
    return f"{tool_name} {figures.short_version(version)}" if version else tool_name


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
