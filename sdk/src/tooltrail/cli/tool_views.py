"""The views of `tooltrail query` about tools of the registry."""

from typing import Any

from tooltrail.cli import facts
from tooltrail.cli.values import count_of, instant, joined, number, share
from tooltrail.cli.view import View, column, number_column

_A_TOOL = {"tool": "the tool's name or id"}
_NEEDED: dict[str, Any] = {"required": True, "type": int}

TOOL_VIEWS: dict[str, View] = {
    "tools": View(
        "List the registered tools.",
        "tools",
        "tools",
        (
            column("TOOL", "name", is_elastic=True),
            number_column("VERSION", "version"),
            column("PUBLISHED (UTC)", instant("published_at"), goes=1),
            column("BY", "published_by", is_elastic=True, goes=3),
            column("DESCRIPTION", "description", is_elastic=True, goes=2),
        ),
        is_paged=True,
    ),
    "tool": View(
        "List the versions of a tool, newest first.",
        "tools/{tool}",
        "versions",
        (
            number_column("VERSION", "version"),
            column("STATE", "state", is_state=True),
            column("PUBLISHED (UTC)", instant("published_at")),
            column("BY", "published_by", is_elastic=True, goes=1),
            column("DESCRIPTION", "description", is_elastic=True, goes=2),
            column("DIGEST", "digest", is_elastic=True, goes=3),
        ),
        facts=facts.tool,
        arguments=_A_TOOL,
    ),
    "diff": View(
        "Compare two versions of a tool.",
        "tools/{tool}/diff",
        "changes",
        (
            column("SIDE", "side"),
            column("VERDICT", "verdict", is_state=True),
            column("PATH", "path", is_elastic=True),
            column("KEYWORD", "keyword", goes=1),
            column("REASON", "reason", is_elastic=True),
        ),
        options=("from", "to"),
        facts=facts.diff,
        arguments=_A_TOOL,
        needs={
            "from": {"help": "number of the old version", **_NEEDED},
            "to": {"help": "number of the new version", **_NEEDED},
        },
    ),
    "effect": View(
        "Compare failures, violations and durations before and after a version was published.",
        "tools/{tool}/effect",
        "measures",
        (
            column("MEASURE", "measure"),
            column("BEFORE", number("before"), is_right=True),
            column("AFTER", number("after"), is_right=True),
            column("VERDICT", "verdict"),
            column("TEST", "test", goes=1),
            column("P", number("p"), is_right=True, goes=1),
        ),
        options=("version", "range", "calls"),
        facts=facts.effect,
        arguments=_A_TOOL,
        needs={
            "version": {"help": "number of the version", **_NEEDED},
            "range": {"help": "length of both windows: 6h, 24h, 7d or 30d (7d)"},
        },
    ),
    "drift": View(
        "List what the calls of a tool take and return that its contract does not declare.",
        "tools/{tool}/drift",
        "differences",
        (
            column("SIDE", "side"),
            column("KIND", "kind"),
            column("PATH", "path", is_elastic=True),
            number_column("CALLS", "calls"),
            column("% OF CALLS", share, is_right=True, goes=1),
            column("DECLARED", "declared", is_elastic=True, goes=2),
            column("SEEN", "seen", is_elastic=True),
        ),
        facts=facts.drift,
        arguments=_A_TOOL,
    ),
    "registry": View(
        "List all tools with their versions; with --json: the export of the registry.",
        "registry",
        "tools",
        (
            column("TOOL", "name", is_elastic=True),
            number_column("CURRENT", "current_version"),
            column("VERSIONS", count_of("versions"), is_right=True),
            column("OWNER", "owner", is_elastic=True, goes=1),
            column("TAGS", joined("tags"), is_elastic=True, goes=2),
            column("NOTES", "notes", is_elastic=True, goes=3),
        ),
    ),
}
