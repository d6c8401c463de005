"""How the tool calls of real frameworks arrive: one command, one table.

    uv run python -m bench.frameworks [PAIR ...] [--into docs/frameworks/measured.md]

Each pair of a framework and an instrumentation runs in an environment of its own, with a scripted
model: the script of the SDK's adapter, whose record is what happened. Its spans are sent to a
Tooltrail of its own, once in one request and once each in a request of its own, children first. A
cell is ● only if both ways are right. Pairs that are not run here use spans kept from real runs.
"""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.frameworks.calls import SeenCall, of_events
from bench.frameworks.capture import capture
from bench.frameworks.judging import COLUMNS, Mark, judge, worse
from bench.frameworks.kept import KEPT, THEIRS, kept
from bench.frameworks.pairs import PAIRS
from bench.frameworks.site import Tooltrail, running


def main() -> int:
    """Measure and print. The exit code is 1 if a pair could not be run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pair", nargs="*", help="ids of pairs; all if none is given")
    parser.add_argument("--into", type=Path, help="a file to write the table to")
    options = parser.parse_args()
    known = [*(pair.id for pair in PAIRS), *KEPT]
    chosen = options.pair or known
    if unknown := sorted({*chosen} - {*known}):
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    rows: list[str] = []
    reasons: list[str] = []
    not_run: dict[str, str] = {}
    with running() as site:
        for pair in (pair for pair in PAIRS if pair.id in chosen):
            captured = capture(pair)
            if isinstance(captured, str):
                not_run[pair.id] = captured
                print(f"{pair.id} does not run here: {captured}", file=sys.stderr, flush=True)
                continue
            marks = measure(site, captured.spans, of_events(captured.events), pair.unreported)
            add(rows, reasons, pair.id, pair.what, "run", marks, pair.theirs)
        for name, what in KEPT.items():
            if name in chosen:
                marks = measure(site, *kept(name))
                add(
                    rows,
                    reasons,
                    name,
                    what,
                    "kept",
                    marks | {"nest": Mark("–")},
                    THEIRS.get(name, {}),
                )
    heads = ("id", "framework, instrumentation", "", *COLUMNS)
    table = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *rows]
    text = "\n".join([*table, "", *reasons, ""])
    print(text)
    if options.into is not None:
        head, _, _ = options.into.read_text().partition("| id |")
        options.into.write_text(head + text)
    return 1 if not_run else 0


def measure(
    site: Tooltrail,
    spans: ExportTraceServiceRequest,
    made: Sequence[SeenCall],
    unreported: Collection[str] = (),
) -> dict[str, Mark]:
    """A mark for each column: the worse of both ways to send the spans."""
    together, single = (
        judge(made, site.show(spans, one_by_one=each), unreported) for each in (False, True)
    )
    marks = {}
    for column in COLUMNS:
        one, other = together[column], single[column]
        mark = worse(one, other)
        if one.sign != other.sign:
            way = "one by one" if mark is other else "in one request"
            mark = Mark(mark.sign, f"{mark.why} (only if spans come {way})")
        marks[column] = mark
    return marks


def add(
    rows: list[str],
    reasons: list[str],
    name: str,
    what: str,
    how: str,
    marks: Mapping[str, Mark],
    theirs: Mapping[str, str],
) -> None:
    """Add a pair's row to the table, and the reason of each cell that is not ●."""
    signs = [marks[column].sign for column in COLUMNS]
    rows.append(f"| {' | '.join((name, what, how, *signs))} |")
    print(rows[-1], file=sys.stderr, flush=True)
    whys = [
        f"*{column}* {mark.why}" + (f" – {theirs[column]}" if column in theirs else "")
        for column, mark in marks.items()
        if mark.sign in "◐○"
    ]
    if whys:
        reasons.append(f"- **{name}**: {'; '.join(whys)}")


if __name__ == "__main__":
    sys.exit(main())
