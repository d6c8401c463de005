"""The sections of a report about what is around its calls: registry, alerts, completeness, exports.

Each is made from its members of the stored document. Pure.
"""

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
    numbers,
    tool_cell,
    with_rows,
)
from audit.reports.queries import Report
from audit.show.figures import count
from config.instants import to_the_minute


def registry(all_figures: dict[str, Any], report: Report) -> Section:
    """Tool versions that were published."""
    own = all_figures["registry"]
    table = Table(
        "Published versions, newest first",
        [Column("Tool"), Column("Version"), Column("Digest"), Column("Published"), Column("By")],
        [
            [
                tool_cell(one["tool_name"], one["tool_name"]),
                Cell(f"v{one['number']}" + (", new tool" if one["number"] == 1 else "")),
                Cell(one["digest"].removeprefix("sha256:")[:12], "mono"),
                Cell(to_the_minute(datetime.fromisoformat(one["at"]), report.of.zone)),
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
            ("New tools", Cell(count(own["new_tools"]))),
        ],
        with_rows(table),
        "" if own["versions"] else "No versions published.",
    )


def alerts(all_figures: dict[str, Any]) -> Section:
    """Which rules of alerts fired, and what people did."""
    own = all_figures["alerts"]
    table = Table(
        "Rules, those that fired most often first",
        [
            Column("Rule"),
            *numbers("Fired", "Alerts", "Muted", "Acknowledged", "Unresolved"),
        ],
        [
            [
                Cell(one["rule"]),
                Cell(count(one["fired"])),
                bad(one["alerts"], "failed"),
                Cell(count(one["muted"]), "" if one["muted"] else "dim"),
                Cell(count(one["acknowledged"]), "" if one["acknowledged"] else "dim"),
                bad(one["unresolved"], "open"),
            ]
            for one in own["rules"]
        ],
        more(own["rule_count"], own["rules"], "rule"),
    )
    return Section(
        "alerts",
        "Alerts",
        [
            ("Fired", Cell(count(own["fired"]))),
            ("Alerts", bad(own["alerts"], "failed")),
            ("Acknowledged", Cell(count(own["acknowledged"]))),
            ("Unresolved", bad(own["unresolved"], "open")),
        ],
        with_rows(table),
        "Fired counts warnings and alerts. Unresolved is as of the report's creation."
        if own["rules"]
        else "No rule fired.",
    )


def completeness(all_figures: dict[str, Any], report: Report) -> Section:
    """Whether events were lost."""
    own, zone = all_figures["completeness"], report.of.zone
    gaps = Table(
        "Dropped events by reason",
        [Column("Reason"), Column("Dropped events", True), Column("Producers", True)],
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
        "Producers that are silent or have gaps",
        [
            *(Column("Producer"), Column("Last seen")),
            *numbers("Sequence gaps", "Dropped events"),
        ],
        [
            [
                Cell(one["producer_id"], "mono"),
                Cell(to_the_minute(datetime.fromisoformat(one["last_heard_at"]), zone)),
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
            ("Dropped events", bad(own["lost"], "violation")),
            ("Sequence gaps", bad(own["missing"], "violation")),
            ("Rejected events waiting", limited(own["inbox"], 1000, "violation")),
            ("Producers seen since the start", Cell(count(own["producers"]))),
            ("Silent for 15 min", Cell(count(own["silent"]))),
        ],
        with_rows(gaps, producers),
        "Dropped events are those of the range. Other figures are as of the report's creation.",
    )


def exports(all_figures: dict[str, Any], report: Report) -> Section:
    """Who exported what."""
    own = all_figures["exports"]
    table = Table(
        "Exports, newest first",
        [Column("User"), Column("Export"), Column("Time"), Column("Query", is_wide=True)],
        [
            [
                Cell(one["user"]),
                Cell(f"{one['what']}s as {one['form'].upper()}"),
                Cell(to_the_minute(datetime.fromisoformat(one["at"]), report.of.zone)),
                Cell(one["query"] or "all", "mono" if one["query"] else "dim"),
            ]
            for one in own["listed"]
        ],
        more(own["exports"], own["listed"], "export"),
    )
    return Section(
        "exports",
        "Exports",
        [("Exports", Cell(count(own["exports"])))],
        with_rows(table),
        "" if own["listed"] else "No exports.",
    )
