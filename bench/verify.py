"""How fast an evidence bundle is verified, and in how much memory.

    uv run bench/verify.py [--events 1000000] [--bytes 1180] [--runs 3] [--profile]

Makes a bundle of so many events, 100 payloads erased, with 1,000 entries before and 300 behind
its range, signed by three witnesses, and runs `verify` on it in a process of its own, with a policy
of two of three: time, events a second, and the highest resident memory, once also for a tenth of
the events, as memory must not grow. One core.
"""

import argparse
import cProfile
import json
import multiprocessing
import os
import pstats
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from tooltrail.evidence import (
    Archive,
    BundleWriter,
    EntryLine,
    Manifest,
    Policy,
    ProvedLine,
    Tree,
    verify,
)
from tooltrail.evidence.layout import FORMAT, leaf_from
from tooltrail.ledger import Checkpoint, Kind, SigningKey, commit_of, inclusion_proof, parse_note
from tooltrail.ledger.cosignature import WitnessKey, cosign
from tooltrail.ledger.frontier import subtrees_before, subtrees_behind

KEY = SigningKey("bench.example/log/bench", bytes(range(32)))
WITNESSES = [SigningKey(f"w{number}.example", bytes([number]) * 32) for number in (1, 2, 3)]
BEFORE, BEHIND, ERASED = 1_000, 300, 100
BEGAN_US = 1_795_000_000_000_000
WORDS = [f"{word}{n}" for n in range(400) for word in ("order", "refund", "search", "policy")]


class Log:
    """A ledger of events like executors'; generates the same events on every request."""

    def __init__(self, events: int, size: int) -> None:
        self.begin, self.end = BEFORE, BEFORE + events
        rng = random.Random(11)
        self._bodies = [self._body(rng, size) for _ in range(500)]
        self._leaves = b"".join(self.line(index)[0].leaf for index in range(self.end + BEHIND))
        self._levels = self._tree()

    def line(self, index: int) -> tuple[EntryLine, bytes]:
        """An entry and the bytes of its event."""
        raw = b'{"type":"toolExecutionStart","n":%d,' % index + self._bodies[index % 500]
        kind = Kind.START
        if index == self.end:
            raw = json.dumps({"ranges": [[self.begin, self.begin + ERASED]]}).encode()
            kind = Kind.ERASURE
        salt = sha256(b"salt %d" % index).digest()
        line = EntryLine(
            index=index,
            leaf=b"",
            kind=kind,
            event_id=_id(index),
            invocation_id=_id(-index),
            received_us=BEGAN_US + index,
            length=len(raw),
            salt=salt,
        )
        line.leaf = leaf_from(line, commit_of(salt, raw))
        return line, raw

    def entries(self) -> Iterator[tuple[EntryLine, bytes]]:
        """The entries of the bundle."""
        for index in range(self.begin, self.end):
            line, raw = self.line(index)
            erased = index < self.begin + ERASED
            yield (EntryLine(index, line.leaf), b"") if erased else (line, raw)

    def subtree(self, level: int, index: int) -> bytes:
        """The hash of a complete subtree."""
        return self._levels[level][index * 32 : index * 32 + 32]

    def _tree(self) -> list[bytes]:
        levels = [self._leaves]
        while len(levels[-1]) > 32:
            below = levels[-1]
            pairs = range(0, len(below) // 64 * 64, 64)
            levels.append(b"".join(sha256(b"\x01" + below[at : at + 64]).digest() for at in pairs))
        return levels

    @staticmethod
    def _body(rng: random.Random, size: int) -> bytes:
        text = " ".join(rng.choices(WORDS, k=size))[: size - 60]
        return f'"args":{{"query":"{text}"}}}}'.encode()


def make(path: Path, events: int, size: int) -> None:
    """Write the bundle."""
    log = Log(events, size)
    whole = log.end + BEHIND
    # The root of the whole tree, from the complete subtrees that cover it.
    parts = [log.subtree(*each) for each in subtrees_before(whole)]
    root = parts.pop()
    while parts:
        root = sha256(b"\x01" + parts.pop() + root).digest()
    note = Checkpoint(KEY.name, whole, root).sign([KEY])
    text, _ = parse_note(note)
    for witness in WITNESSES:
        note += str(cosign(text, witness, BEGAN_US // 1_000_000)).encode()
    writer = BundleWriter()
    manifest = Manifest(
        format=FORMAT,
        origin=KEY.name,
        tenant="bench",
        made_at="2026-11-22T00:00:00Z",
        made_by="bench",
        first_index=log.begin,
        end_index=log.end,
    )
    with path.open("wb") as file:
        file.write(writer.begin(manifest, ""))
        file.writelines(writer.entries(log.entries()))
        line, raw = log.line(log.end)
        file.write(
            writer.end(
                versions=[],
                report=None,
                statements=[],
                erasures=[ProvedLine(line, raw, inclusion_proof(log.end, whole, log.subtree))],
                checkpoints={whole: note},
                tree=Tree(
                    [log.subtree(*each) for each in subtrees_before(log.begin)],
                    [log.subtree(*each) for each in subtrees_behind(log.end, whole)],
                    {},
                ),
                keys=[str(KEY.verifier)],
            )
        )


def check(path: Path, results: "multiprocessing.Queue[tuple[float, float, int]]") -> None:
    """Verify the bundle once, alone in this process and on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    start, used = time.perf_counter(), time.process_time()
    keys = [WitnessKey(each.name, each.verifier.public) for each in WITNESSES]
    with Archive(path) as archive:
        verdict = verify(archive, trusted=[KEY.verifier], policy=Policy.of(keys, "2of3"))
    assert verdict.is_genuine and not verdict.is_undecided, "\n".join(verdict.lines())
    assert verdict.erased == ERASED, verdict.erased
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.put((time.perf_counter() - start, time.process_time() - used, peak))


def main() -> None:
    """Make, verify, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=1_180)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    sys.stdout.write("   events  bundle     time    of core   events/s   peak memory\n")
    with tempfile.TemporaryDirectory() as folder:
        for events in (options.events // 10, *[options.events] * options.runs):
            path = Path(folder) / f"{events}.zip"
            if not path.exists():
                maker = context.Process(target=make, args=(path, events, options.bytes))
                maker.start()
                maker.join()
            results: multiprocessing.Queue[tuple[float, float, int]] = context.Queue()
            checker = context.Process(target=check, args=(path, results))
            checker.start()
            wall, cpu, peak = results.get(timeout=600)
            checker.join()
            megabytes = path.stat().st_size / 1e6
            sys.stdout.write(
                f"{events:9,} {megabytes:5.0f} MB {wall:6.1f} s {cpu:7.1f} s"
                f" {events / wall:10,.0f} {peak / 1024:9.0f} MiB\n"
            )
        if options.profile:
            profile = cProfile.Profile()
            with Archive(path) as archive:
                profile.runcall(verify, archive, trusted=[KEY.verifier])
            pstats.Stats(profile).sort_stats("tottime").print_stats(12)


def _id(number: int) -> UUID:
    return UUID(bytes=sha256(b"id %d" % number).digest()[:16])


if __name__ == "__main__":
    main()
