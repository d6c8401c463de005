"""The lines of `tooltrail query` above the rows, for documents that have more than rows."""

import json
from collections.abc import Iterator
from typing import Any

from tooltrail.cli.tables import tame
from tooltrail.cli.values import Row, duration, instant


def _aligned(pairs: Iterator[tuple[str, Any]]) -> Iterator[str]:
    shown = [(name, tame(str(value))) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    yield from (f"{name:{width}}  {value}" for name, value in shown)


def summary(document: Row) -> Iterator[str]:
    """The totals of a range."""
    durations = document["duration_ms"]

    def pairs() -> Iterator[tuple[str, Any]]:
        yield "from", instant("from")(document)
        yield "to", f"{instant('to')(document)} UTC"
        for name in ("calls", "errors", "open", "violations"):
            yield name, f"{document[name]:,}"
        yield "tokens", f"{document['prompt_tokens']:,} in, {document['completion_tokens']:,} out"
        if durations["p50"] is not None:
            yield "duration", ", ".join(f"{name} {duration(durations[name])}" for name in durations)

    yield from _aligned(pairs())


def trace(document: Row) -> Iterator[str]:
    """A trace, above its calls."""

    def pairs() -> Iterator[tuple[str, Any]]:
        yield "trace", document["trace_id"]
        yield "run", document["run_id"]
        yield "started", f"{instant('first_started_at')(document)} UTC"
        yield "duration", duration(document["duration_ms"])
        for name in ("calls_started", "calls_failed", "calls_open", "violations"):
            yield name.replace("_", " ").replace(" started", ""), f"{document[name]:,}"

    yield from _aligned(pairs())
    if document["is_cut"]:
        yield f"The first {len(document['calls']):,} calls:"
    yield ""


def call(document: Row) -> Iterator[str]:
    """Everything about one call, its payloads as JSON."""
    apart = {"violations", "start", "end", "withheld", "log_error", "duration_ms"}
    apart |= {"violation_path", "violation_code", "started_at", "ended_at"}

    def pairs() -> Iterator[tuple[str, Any]]:
        for name, value in document.items():
            if name == "started_at":
                yield "started", f"{instant(name)(document)} UTC"
                yield "duration", duration(document["duration_ms"])
            elif name not in apart and value not in (None, 0, False):
                yield name.replace("_", " "), value

    yield from _aligned(pairs())
    for one in document["violations"]:
        got = f", got {one['received']}" if one["received"] else ""
        text = f"{one['path']} {one['code']}: expected {one['expected']}{got}"
        yield f"violation  {tame(text)}"
    for kind, member in (("start", "args"), ("end", "output")):
        recorded = document[kind]
        if recorded is None:
            continue
        yield ""
        yield f"{member}  ({kind} at ledger index {recorded['ledger_index']:,})"
        if document["withheld"]:
            yield "  hidden: the key lacks the scope payloads"
        elif recorded["event"] is None:
            yield "  erased"
        else:
            value = recorded["event"].get(member)
            for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines():
                yield f"  {tame(line)}"
    if document["log_error"]:
        yield f"The log could not be read: {tame(document['log_error'])}"


def tally(document: Row) -> Iterator[str]:
    """How many calls have each condition."""
    yield ", ".join(f"{count:,} {kind}" for kind, count in document["tally"].items())
    yield ""


def producers(document: Row) -> Iterator[str]:
    """How many producers there are, and which events they dropped."""
    yield (
        f"{document['producer_count']:,} producers, {document['heard_lately']:,} active in the"
        f" last 15 minutes, {document['inbox']:,} rejected events in the inbox"
    )
    for gap in document["gaps"]:
        yield f"dropped: {gap['lost']:,} events, {tame(gap['reason'])}"
    yield ""


def total(document: Row) -> Iterator[str]:
    """The range."""
    yield f"{instant('from')(document)} to {instant('to')(document)} UTC"
    yield ""


def repeats(document: Row) -> Iterator[str]:
    """The range, and the totals of loops and repeats."""
    yield f"{instant('from')(document)} to {instant('to')(document)} UTC"
    yield (
        f"{document['loops']:,} loops of {document['loop_calls']:,} calls,"
        f" {document['repeated']:,} repeats of {document['repeated_calls']:,}"
    )
    yield ""


def tool(document: Row) -> Iterator[str]:
    """A tool, above its versions."""

    def pairs() -> Iterator[tuple[str, Any]]:
        yield "tool", document["name"]
        yield "id", document["id"]
        yield "current version", document["current_version"]
        yield "owner", document["owner"]
        yield "link", document["link"]
        yield "tags", ", ".join(document["tags"])

    yield from _aligned(pairs())
    yield ""


def diff(document: Row) -> Iterator[str]:
    """What two versions mean for callers and consumers."""
    yield (
        f"{document['change_count']:,} changes; callers: {tame(document['callers'])},"
        f" consumers: {tame(document['consumers'])}"
    )
    yield ""


def effect(document: Row) -> Iterator[str]:
    """The two windows, and how many calls are in each."""
    before = document["before_version"]
    yield (
        f"version {document['version']}"
        + (f" after version {before}" if before else "")
        + f", published {instant('published_at')(document)} UTC"
    )
    for side in ("before", "after"):
        of = document[side]
        yield (
            f"{side:6}  {of['calls']:,} calls, {of['failed']:,} failed, {of['violating']:,} with"
            " violations"
        )
    yield ""


def drift(document: Row) -> Iterator[str]:
    """The analysis, and which versions are called."""
    yield (
        f"{tame(document['state'])}: {document['calls']:,} calls from {instant('from')(document)}"
        f" to {instant('to')(document)} UTC, against version {document['against_version']}"
    )
    for one in document["versions"]:
        named = tame(str(one["named"])) or "none"
        yield f"named version {named}: {one['calls']:,} calls, {one['failed']:,} failed"
    for one in document["flags"]:
        yield tame(
            f"flag {one['flag']}: registered {one['registered']}, reported {one['reported']}"
        )
    yield ""


def ledger(document: Row) -> Iterator[str]:
    """How many entries there are, and whether they are signed."""

    def pairs() -> Iterator[tuple[str, Any]]:
        yield "origin", document["origin"]
        yield "entries", f"{document['entries']:,}"
        yield "signed", f"{document['signed']:,}"
        yield "signed at", f"{instant('signed_at')(document)} UTC" if document["signed_at"] else ""
        yield "refused", document["refusal"]

    yield from _aligned(pairs())
