"""Which documents the site has, at which addresses, and in which order."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

OUTSIDE = {
    "sdk/README.md": "sdk",
    "sdk-js/README.md": "sdk-js",
    "bench/README.md": "benchmarks",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
}
"""The documents outside of `docs/`, and their names on the site."""


LABELS = {
    "start/engineer": "Engineers",
    "start/executor-author": "Authors of executors",
    "start/registry-admin": "Registry admins",
    "start/auditor": "Auditors",
    "start/operator": "Operators",
    "sdk": "SDK for Python",
    "sdk-js": "SDK for JavaScript",
    "frameworks/index": "Frameworks, OpenTelemetry",
    "coming-from": "Coming from another guard",
    "alerts": "Channels of alerts",
    "evidence": "Evidence",
    "compliance": "Clause reports",
    "siem": "Streams to SIEMs",
    "mcp": "Ask the record: MCP",
    "running": "Install and run",
    "operations": "Operate",
    "adr/index": "Decisions",
    "tampering": "Kinds of tampering",
}
"""The words of the navigation for pages whose titles are long, or say little beside others."""


class Section(NamedTuple):
    """A heading of the navigation, and the names of its pages."""

    heading: str
    names: tuple[str, ...]


SECTIONS = (
    Section(
        "Quick start for",
        (
            "start/engineer",
            "start/executor-author",
            "start/registry-admin",
            "start/auditor",
            "start/operator",
        ),
    ),
    Section(
        "Record calls",
        (
            "first-steps",
            "sdk",
            "sdk-js",
            "frameworks/index",
            "mcp-recorder",
            "coming-from",
            "spool",
        ),
    ),
    Section(
        "Work with the record",
        (
            "queries",
            "charts",
            "registry",
            "check",
            "alert-rules",
            "alerts",
            "costs",
            "notes",
            "sharing",
            "evidence",
            "siem",
            "sampling",
            "compliance",
            "mcp",
        ),
    ),
    Section("Run a server", ("running", "operations", "archive", "sign-in", "configuration")),
    Section(
        "Reference",
        (
            "events",
            "api",
            "reference/events",
            "reference/queries",
            "reference/ledger",
            "reference/api",
            "reference/commands",
            "reference/settings",
            "reference/metrics",
            "ledger",
            "glossary",
            "changelog",
        ),
    ),
    Section(
        "Explanation",
        ("architecture", "adr/index", "tampering", "benchmarks", "contributing", "security"),
    ),
)
"""The navigation. A page that is in no section, and no folder's index, fails the build."""


def documents() -> dict[str, str]:
    """The name on the site of every document, by its path in the repository."""
    inside = {
        path.relative_to(ROOT).as_posix(): _name(path.relative_to(ROOT / "docs"))
        for path in sorted((ROOT / "docs").glob("**/*.md"))
    }
    return inside | OUTSIDE


def _name(path: Path) -> str:
    stem = path.with_suffix("")
    return (stem.with_name("index") if stem.name == "README" else stem).as_posix()


def address(name: str) -> str:
    """The address of a page below that of the site: `adr/` of `adr/index`, '' of `index`."""
    *folders, last = name.split("/")
    return "".join(f"{each}/" for each in (folders if last == "index" else (*folders, last)))
