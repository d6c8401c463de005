"""Builds the layout of a stored report, in the report's own time zone. Pure."""

from datetime import datetime
from typing import Any

from audit.reports.call_sections import (
    latency,
    open_executions,
    reliability,
    repeats,
    unrun_calls,
    violations,
)
from audit.reports.callers import callers
from audit.reports.changes import HEADLINES
from audit.reports.costs import costs
from audit.reports.findings import findings
from audit.reports.layout import Bar, Cell, Chart, Column, Layout, Section, Table, Tile, ms
from audit.reports.periods import KINDS, in_words, zone_words
from audit.reports.queries import Report
from audit.reports.sections import alerts, completeness, exports, registry
from audit.show import figures
from audit.show.figures import count, counted, share
from audit.show.tiles import points, relative
from config.instants import local, short_day, to_the_minute


def lay_out(report: Report, tenant_name: str) -> Layout:
    """The layout of a report, in its own time zone."""
    all_figures, zone = report.figures, report.of.zone
    by = {"person": report.made_by, "key": f"the API key {report.made_by}"}
    made_by = by.get(report.made_as, "the schedule")
    return Layout(
        title=KINDS[report.kind],
        tenant=tenant_name,
        of=in_words(report.kind, report.of),
        zone=zone_words(report.of),
        made=f"Created by {made_by}, {to_the_minute(report.created_at, zone)}",
        warnings=warnings(report),
        facts=[
            ("Report", str(report.id)),
            ("Created by", made_by),
            ("Created at", to_the_minute(report.created_at, zone)),
            ("Time zone", zone_words(report.of)),
            ("Ledger size", counted(report.ledger_size, "event")),
            ("Calls", report.query),
        ],
        query=report.query,
        tiles=_tiles(all_figures),
        findings=findings(all_figures),
        chart=_chart(report),
        since=_since(report) if "since" in all_figures else None,
        sections=[
            reliability(all_figures),
            violations(all_figures, report),
            *([unrun_calls(all_figures)] if "unrun" in all_figures else []),  # not in older reports
            latency(all_figures),
            *([costs(all_figures)] if any(all_figures.get("costs", {}).values()) else []),
            *([callers(all_figures)] if _names_callers(all_figures) else []),
            open_executions(all_figures),
            repeats(all_figures, report),
            registry(all_figures, report),
            *([alerts(all_figures)] if "alerts" in all_figures else []),  # likewise
            completeness(all_figures, report),
            exports(all_figures, report),
        ],
    )


def warnings(report: Report) -> list[str]:
    """What a reader must know before the figures."""
    if report.figures["is_over"]:
        return []
    return ["The range had not ended when this report was created."]


def _names_callers(all_figures: dict[str, Any]) -> bool:
    """Whether a call names an agent or an environment. Older reports have no such figures."""
    own = all_figures.get("callers", {"agents": [], "environments": []})
    return any(one["agent"] for one in own["agents"]) or any(
        one["environment"] for one in own["environments"]
    )


def value_text(value: float | None, unit: str) -> str:
    """A figure of `audit.reports.changes` as text."""
    if value is None:
        return "—"
    if unit == "share":
        return share(value)
    return ms(value) if unit == "duration" else count(int(value))


def _tiles(all_figures: dict[str, Any]) -> list[Tile]:
    volume, failing, broken = (
        all_figures["volume"],
        all_figures["reliability"],
        all_figures["violations"],
    )
    timing, tokens, complete = (
        all_figures["latency"],
        all_figures["tokens"],
        all_figures["completeness"],
    )
    used = tokens["prompt_tokens"] + tokens["completion_tokens"]
    return [
        Tile(
            "Calls",
            count(volume["calls"]),
            f"of {counted(volume['tools'], 'tool')}",
            relative(volume["calls"], volume["previous"], "count"),
        ),
        Tile(
            "Failed",
            share(failing["error_rate"]),
            counted(failing["failed"], "call"),
            points(failing["error_rate"], failing["previous"]),
            "failed" if failing["failed"] else "",
        ),
        Tile(
            "Calls with violations",
            share(broken["violation_rate"]),
            counted(broken["violating"], "call"),
            points(broken["violation_rate"], broken["previous"]),
            "violation" if broken["violating"] else "",
        ),
        Tile(
            "p95 duration",
            ms(timing["p95_ms"]),
            f"p50 {ms(timing['p50_ms'])}" if timing["p50_ms"] else "",
            relative(timing["p95_ms"], timing["previous"], "duration", more_is="worse"),
        ),
        Tile(
            "Tokens",
            figures.short_count(used),
            f"{figures.short_count(tokens['prompt_tokens'])} in,"
            f" {figures.short_count(tokens['completion_tokens'])} out",
            relative(used, tokens["previous"], "count"),
        ),
        Tile(
            "Completeness",
            "OK" if complete["is_complete"] else "Check",
            "no loss detected" if complete["is_complete"] else "possible loss",
            None,
            "ok" if complete["is_complete"] else "violation",
        ),
    ]


def _chart(report: Report) -> Chart:
    volume, zone = report.figures["volume"], report.of.zone
    parts = volume["parts"]
    top = max((part["calls"] for part in parts), default=0)
    width = 100 / max(1, len(parts))
    by_day = volume["step"] in {"day", "week"}

    def name(part: dict[str, Any]) -> str:
        there = local(datetime.fromisoformat(part["from"]), zone)
        return short_day(there) if by_day else f"{there:%H:%M}, {short_day(there)}"

    bars = [
        Bar(
            name=name(part),
            x=round(n * width, 3),
            width=round(width * 0.82, 3),
            failed=_height(part["failed"], top),
            ok=_height(part["calls"] - part["failed"], top),
            title=f"{name(part)}: {counted(part['calls'], 'call')}, {count(part['failed'])} failed",
        )
        for n, part in enumerate(parts)
    ]
    return Chart(
        f"Calls per {volume['step']}",
        count(top),
        bars[0].name if bars else "",
        bars[-1].name if bars else "",
        bars,
    )


def _height(number: int, top: int) -> float:
    return round(100 * number / top, 3) if top else 0.0


def _since(report: Report) -> Section:
    since = report.figures["since"]
    arrived = report.ledger_size - since["ledger_size"]
    return Section(
        "since",
        "Changes since the earlier report",
        [
            (
                "Earlier report",
                Cell(to_the_minute(datetime.fromisoformat(since["created_at"]), report.of.zone)),
            ),
            ("Ledger size then", Cell(counted(since["ledger_size"], "event"))),
            ("Ledger size now", Cell(counted(report.ledger_size, "event"))),
            ("New events", Cell(counted(arrived, "event"), "open" if arrived else "")),
        ],
        [
            Table(
                "Changed figures",
                [Column("Figure"), Column("Then", True), Column("Now", True)],
                [
                    [
                        Cell(one["figure"]),
                        Cell(value_text(one["before"], one["unit"]), "dim"),
                        Cell(value_text(one["now"], one["unit"])),
                    ]
                    for one in since["changes"]
                ],
            )
        ]
        if since["changes"]
        else [],
        "" if since["changes"] else f"None of the {len(HEADLINES)} figures changed.",
    )
