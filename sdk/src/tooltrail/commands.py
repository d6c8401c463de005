"""The `tooltrail` command: look at what waits in the spool, send it, send a file of events.

Owns what people type and read; the work is the spool's and the shipper's. The api key comes
from the environment only, as command lines are readable by every user of a machine. Exit
codes: 0 all is well or sent, 1 something still waits, 2 wrong usage.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tooltrail.announcement import Announcer
from tooltrail.producer import Producer
from tooltrail.settings import Settings, default_spool_dir
from tooltrail.spool.base import BATCH_BYTES, BATCH_EVENTS
from tooltrail.spool.home import (
    ORIGIN,
    REJECTED,
    claimed,
    homes,
    make_root,
    read_origin,
)
from tooltrail.spool.segments import read_home

POLL_SECONDS = 0.2
BAR_WIDTH = 30


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    options = _parser().parse_args(argv)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tooltrail",
        description="Look at the events that wait on this machine, and send them.",
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one line of JSON")
    common.add_argument("--spool-dir", help="where events wait (TOOLTRAIL_SPOOL_DIR)")
    sending = argparse.ArgumentParser(add_help=False, parents=[common])
    sending.add_argument("--url", help="the server (TOOLTRAIL_URL); the key: TOOLTRAIL_API_KEY")
    sending.add_argument("--timeout", type=float, default=60.0, help="seconds, 60 by default")

    verbs = parser.add_subparsers(required=True, metavar="status | flush | send")
    status = verbs.add_parser("status", parents=[common], help="what waits, for whom, since when")
    status.set_defaults(run=_status)
    flush = verbs.add_parser("flush", parents=[sending], help="send what dead processes left")
    flush.set_defaults(run=_flush)
    send = verbs.add_parser("send", parents=[sending], help="send events from a file")
    send.add_argument("file", nargs="?", help="NDJSON, one event a line; - reads standard input")
    send.add_argument("--adopt", metavar="OLD_KEY_ID", help="send what waits for an older key")
    send.set_defaults(run=_send)
    return parser


def _status(options: argparse.Namespace) -> int:
    settings = Settings.resolve(spool_dir=options.spool_dir)
    roots = [_describe(root) for root in _roots(settings.spool_dir or default_spool_dir())]
    if options.json:
        _say(json.dumps({"spools": roots}))
    elif not roots:
        _say("No event waits here.")
    for root in () if options.json else roots:
        _say(f"{root['url']}  key {root['key_id']}")
        age = f", the oldest for {_age(root['oldest_seconds'])}" if root["waiting"] else ""
        _say(f"  {root['waiting']} events wait ({root['bytes'] / 1e6:.1f} MB){age}")
        _say(f"  {root['living']} processes write here, {root['dead']} have left events behind")
        if root["rejected"]:
            _say(f"  {root['rejected']} batches the server would not take: {root['rejected_dir']}")
    return 1 if any(root["waiting"] for root in roots) else 0


def _flush(options: argparse.Namespace) -> int:
    return _ship(options, [])


def _send(options: argparse.Namespace) -> int:
    if (options.file is None) == (options.adopt is None):
        _complain("tooltrail send takes either a file or --adopt OLD_KEY_ID")
        return 2
    try:
        if options.file is None:
            return _ship(options, [], adopt=options.adopt)
        return _ship(options, _read_events(options.file))
    except OSError as error:
        _complain(f"{options.file or 'the spool'}: {error.strerror}")
        return 2


def _ship(
    options: argparse.Namespace, batches: Iterable[list[bytes]], *, adopt: str | None = None
) -> int:
    """Send these batches and what dead processes left, with a bar, and say what came of it."""
    settings = Settings.resolve(url=options.url, spool_dir=options.spool_dir)
    if not settings.url or not settings.api_key:
        _complain("set TOOLTRAIL_URL and TOOLTRAIL_API_KEY")
        return 2
    if adopt is not None:
        _take_from_key(settings, adopt)
    producer = Producer.open(settings, Announcer(), _complain)
    producer.spool.adopt()
    for lines in batches:
        producer.spool.enqueue(lines)
    total = producer.spool.waiting
    bar = _Bar(total, is_shown=sys.stderr.isatty() and not options.json)
    deadline = time.monotonic() + options.timeout
    is_sent = total == 0
    while not is_sent and (left := deadline - time.monotonic()) > 0:
        is_sent = producer.flush(min(POLL_SECONDS, left))
        bar.show(total - producer.spool.waiting)
    stats = producer.stats()
    producer.close(POLL_SECONDS)
    bar.end()
    if options.json:
        _say(json.dumps(asdict(stats)))
    else:
        _say(
            f"{stats.acknowledged} events sent, {stats.duplicates} of them known already, "
            f"{stats.rejected} in the server's inbox, {stats.waiting} still waiting"
        )
    return 1 if stats.waiting else 0


def _take_from_key(settings: Settings, old_key_id: str) -> None:
    """Move what dead processes left under another key of this server to the present one."""
    url = (settings.url or "").rstrip("/")
    own = make_root(settings.spool_dir, url, settings.api_key or "")
    for root in _roots(settings.spool_dir or default_spool_dir()):
        if root == own or read_origin(root) != {"url": url, "key_id": old_key_id}:
            continue
        for home in homes(root):
            with claimed(home) as is_dead:
                if is_dead:
                    home.rename(own / home.name)


def _read_events(file: str) -> Iterator[list[bytes]]:
    """Cut a file of lines into batches. Raises OSError."""
    with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as source:
        batch: list[bytes] = []
        size = 0
        for line in source:
            text = line.strip()
            if not text:
                continue
            if batch and (len(batch) == BATCH_EVENTS or size + len(text) > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            yield batch


def _roots(spool_dir: Path) -> list[Path]:
    return sorted(path.parent for path in spool_dir.glob(f"*/{ORIGIN}"))


def _describe(root: Path) -> dict[str, Any]:
    waiting = size = living = dead = 0
    oldest: float | None = None
    for home in homes(root):
        with claimed(home) as is_dead:
            dead += is_dead
            living += not is_dead
        for path, count in read_home(home):
            waiting += count
            size += path.stat().st_size
            oldest = min(oldest or time.time(), path.stat().st_mtime)
    rejected = root / REJECTED
    return {
        **read_origin(root),
        "waiting": waiting,
        "bytes": size,
        "oldest_seconds": 0 if oldest is None else max(time.time() - oldest, 0),
        "living": living,
        "dead": dead,
        "rejected": len(list(rejected.glob("*.ndjson"))),
        "rejected_dir": str(rejected),
    }


class _Bar:
    """A progress bar on standard error; nothing where that is no terminal."""

    def __init__(self, total: int, *, is_shown: bool) -> None:
        self._total = total
        self._is_shown = is_shown and total > 0

    def show(self, done: int) -> None:
        """Draw how many of the events are done."""
        if self._is_shown:
            filled = BAR_WIDTH * done // self._total
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            sys.stderr.write(f"\r{bar} {done}/{self._total} events")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._is_shown:
            sys.stderr.write("\n")


def _age(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"tooltrail: {text}\n")
