"""`tooltrail status`, `flush` and `send`: show what waits in the spool, send it or a file.

Owns the command line and its output. Spool and shipper do the work.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from tooltrail.announcement import Announcer
from tooltrail.cli.bar import Bar
from tooltrail.producer import Producer
from tooltrail.settings import Settings, default_spool_dir
from tooltrail.spool.acknowledged import ACKNOWLEDGED
from tooltrail.spool.batch import BATCH_BYTES, BATCH_EVENTS
from tooltrail.spool.files import read_home, read_losses
from tooltrail.spool.home import (
    ORIGIN,
    REJECTED,
    claimed,
    homes,
    make_root,
    read_origin,
)
from tooltrail.spool.lines import plain
from tooltrail.spool.memory import MemorySpool

POLL_SECONDS = 0.2
READ_AHEAD_EVENTS = 4 * BATCH_EVENTS  # read from a file ahead of what the server has accepted
INTERRUPTED = 130
EXIT_CODES = "Exit codes: 0 queue empty, 1 events still waiting or rejected, 2 usage error."


def add_parsers(verbs: Any) -> None:
    """Add `status`, `flush` and `send` to the command line."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one line of JSON")
    common.add_argument("--spool-dir", help="spool folder (TOOLTRAIL_SPOOL_DIR)")
    sending = argparse.ArgumentParser(add_help=False, parents=[common])
    sending.add_argument("--url", help="the server's URL (TOOLTRAIL_URL)")
    sending.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        help="stop after this many seconds without an accepted event (60)",
    )

    status = verbs.add_parser(
        "status", parents=[common], help="show the events waiting to be sent", epilog=EXIT_CODES
    )
    status.set_defaults(run=_status)
    flush = verbs.add_parser(
        "flush",
        parents=[sending],
        help="send events left by exited processes",
        description="Send events left by exited processes. Running processes send their own.",
        epilog=EXIT_CODES,
    )
    flush.set_defaults(run=_flush)
    send = verbs.add_parser(
        "send",
        parents=[sending],
        help="send events from a file",
        description="Send events from a file, and those left by exited processes. Events that "
        "are not accepted in time wait in the spool. It is safe to send a file twice.",
        epilog=EXIT_CODES,
    )
    send.add_argument(
        "file", nargs="?", help="NDJSON file, or one from rejected/; - reads standard input"
    )
    send.add_argument("--adopt", metavar="OLD_KEY_ID", help="send the events of an older key")
    send.add_argument(
        "--from", dest="from_url", metavar="OLD_URL", help="with --adopt: the server's old URL"
    )
    send.set_defaults(run=_send)


def _status(options: argparse.Namespace) -> int:
    settings = Settings.resolve(spool_dir=options.spool_dir)
    roots = [_describe(root) for root in _roots(settings.spool_dir or default_spool_dir())]
    if options.json:
        _print(json.dumps({"spools": roots}))
    elif not roots:
        _print("No events waiting.")
    for root in () if options.json else roots:
        _print(f"{root['url']}  key {root['key_id']}")
        age = f", oldest {_age(root['oldest_seconds'])} ago" if root["waiting"] else ""
        _print(f"  {root['waiting']} events waiting ({root['bytes'] / 1e6:.1f} MB){age}")
        _print(f"  {root['living']} running processes, {root['dead']} exited ones with events")
        if root["lost"]:
            _print(f"  {root['lost']} events lost: in memory only when their process was killed")
            _print("  (the loss is reported to the server with the next events)")
        if root["rejected"]:
            _print(f"  {root['rejected']} batches rejected by the server: {root['rejected_dir']}")
            _print("  (each with its reason; retry one with: tooltrail send FILE)")
        if root["acknowledged"]:
            _print(f"  acknowledged last: {root['acknowledged']} (for tooltrail verify)")
    return 1 if any(root["waiting"] for root in roots) else 0


def _flush(options: argparse.Namespace) -> int:
    settings = _destination(options)
    if settings is None:
        return 2
    code = _ship(settings, options, None)
    # The same key at another address: the server has moved, and nobody else would send these.
    own = read_origin(make_root(settings.spool_dir, settings.url or "", settings.api_key or ""))
    for root in _roots(settings.spool_dir or default_spool_dir()):
        there = _describe(root)
        if there["waiting"] and there["key_id"] == own["key_id"] and there["url"] != own["url"]:
            _complain(
                f"{there['waiting']} events wait for {there['url']}; to send them here, run: "
                f"tooltrail send --adopt {there['key_id']} --from {there['url']}"
            )
            code = code or 1
    return code


def _destination(options: argparse.Namespace) -> Settings | None:
    """The settings for sending. If something is missing, complains and returns None."""
    # "raise", so that nothing is dropped for lack of space: the user has chosen what to send.
    settings = Settings.resolve(url=options.url, spool_dir=options.spool_dir, when_full="raise")
    if not settings.url or not settings.api_key:
        _complain("set TOOLTRAIL_URL and TOOLTRAIL_API_KEY")
        return None
    try:
        make_root(settings.spool_dir, settings.url, settings.api_key)
    except OSError as error:
        _complain(f"{settings.spool_dir or default_spool_dir()}: {error.strerror or error}")
        return None
    return settings


def _send(options: argparse.Namespace) -> int:
    if (options.file is None) == (options.adopt is None) or (options.from_url and options.file):
        _complain("tooltrail send needs either a file or --adopt OLD_KEY_ID")
        return 2
    settings = _destination(options)
    if settings is None:
        return 2
    if options.file is None:
        url: str = options.from_url or settings.url or ""
        if not _take_from_key(settings, options.adopt, url):
            _complain(f"no spool for key {options.adopt} and {url}")
            return 2
        return _ship(settings, options, None)
    if options.file == "-":
        return _ship(settings, options, _Source(sys.stdin.buffer, None))
    path = Path(options.file)
    try:
        with path.open("rb") as file:
            return _ship(settings, options, _Source(file, path.stat().st_size))
    except OSError as error:
        _complain(f"{path}: {error.strerror}")
        return 2


class _Source:
    """A file of events, cut into batches on request."""

    def __init__(self, file: BinaryIO, size: int | None) -> None:
        self.size = size  # bytes, if known
        self.bytes_read = 0
        self.is_exhausted = False
        self._batches = self._cut(file)

    def next(self) -> list[bytes]:
        """The next batch; empty at the end. Raises OSError."""
        batch = next(self._batches, [])
        self.is_exhausted = not batch
        return batch

    def _cut(self, file: BinaryIO) -> Iterator[list[bytes]]:
        batch: list[bytes] = []
        size = 0
        for line in file:
            if not self.bytes_read:
                line = line.removeprefix(b"\xef\xbb\xbf")  # some editors write a byte order mark
            self.bytes_read += len(line)
            text = plain(line.strip())
            if not text:
                continue
            if batch and (len(batch) == BATCH_EVENTS or size + len(text) > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            yield batch


def _ship(settings: Settings, options: argparse.Namespace, source: _Source | None) -> int:
    """Send a source and what dead processes left, with a bar, and print a summary."""
    producer = Producer.open(settings, Announcer(), _complain)
    producer.spool.adopt()
    bar = _SendBar(producer, source, is_shown=sys.stderr.isatty() and not options.json)
    code = 0
    try:
        _send_all(producer, source, bar, options.timeout)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:  # from reading the source, or from a spool without room for it
        _complain(f"after {source.bytes_read if source else 0} bytes: {error.strerror}")
        code = 1
    stats = producer.stats()
    producer.close(POLL_SECONDS)
    bar.end()
    if options.json:
        _print(json.dumps(asdict(stats)))
    else:
        left = "lost" if isinstance(producer.spool, MemorySpool) else "still waiting"
        _print(
            f"{stats.acknowledged} events sent: {stats.duplicates} duplicates, "
            f"{stats.rejected} in the server's inbox; {stats.waiting} {left}"
            + "".join(f", {count} {reason}" for reason, count in stats.dropped.items())
        )
    if source is not None and not source.is_exhausted:
        _complain("the file was not read to its end: send it again, no event is stored twice")
    return code or (1 if stats.waiting or stats.dropped else 0)


def _send_all(producer: Producer, source: _Source | None, bar: "_SendBar", patience: float) -> None:
    """Send until nothing is left, or until the server accepts nothing for `patience` seconds.

    In that case the rest of the source is put into the spool. Raises OSError.
    """
    taken, deadline = 0, time.monotonic() + patience
    is_first = True
    while time.monotonic() < deadline:
        while source is not None and not source.is_exhausted:
            if producer.spool.waiting >= READ_AHEAD_EVENTS:
                break
            _feed(producer, source)
        # Only the first flush hurries. After that the shipper's own pace applies.
        producer.flush(min(POLL_SECONDS, patience), hurries=is_first)
        is_first = False
        bar.show()
        if not producer.spool.waiting and (source is None or source.is_exhausted):
            return
        acknowledged = producer.stats().acknowledged
        if acknowledged > taken:
            taken, deadline = acknowledged, time.monotonic() + patience
    while source is not None and not source.is_exhausted:
        _feed(producer, source)


def _feed(producer: Producer, source: _Source) -> None:
    batch = source.next()
    if batch:
        producer.spool.enqueue(batch)


def _take_from_key(settings: Settings, old_key_id: str, old_url: str) -> bool:
    """Move what dead processes left under another key or address to the current ones.

    Returns whether that key has ever written here.
    """
    url = (settings.url or "").rstrip("/")
    own = make_root(settings.spool_dir, url, settings.api_key or "")
    is_known = False
    for root in _roots(settings.spool_dir or default_spool_dir()):
        if read_origin(root) != {"url": old_url.rstrip("/"), "key_id": old_key_id}:
            continue
        is_known = True
        for home in () if root == own else homes(root):
            with claimed(home) as is_dead:
                if is_dead:
                    home.rename(own / home.name)
    return is_known


def _roots(spool_dir: Path) -> list[Path]:
    return sorted(path.parent for path in spool_dir.glob(f"*/{ORIGIN}"))


def _describe(root: Path) -> dict[str, Any]:
    waiting = size = living = dead = lost = 0
    oldest: float | None = None
    for home in homes(root):
        with claimed(home) as is_dead:
            dead += is_dead
            living += not is_dead
            if is_dead:
                losses = read_losses(home)
                waiting += len(losses)
                lost += sum(len(loss.numbers) for loss in losses)
        for path, count in read_home(home):
            with suppress(OSError):  # sent in the meantime
                file_stat = path.stat()
                waiting += count
                size += file_stat.st_size
                oldest = min(oldest or time.time(), file_stat.st_mtime)
    rejected = root / REJECTED
    return {
        **read_origin(root),
        "waiting": waiting,
        "bytes": size,
        "oldest_seconds": 0 if oldest is None else max(time.time() - oldest, 0),
        "living": living,
        "dead": dead,
        "lost": lost,
        "rejected": len(list(rejected.glob("*.ndjson"))),
        "rejected_dir": str(rejected),
        "acknowledged": str(kept) if (kept := root / ACKNOWLEDGED).exists() else None,
    }


class _SendBar:
    """Shows how much is sent, of a source or else of the waiting events."""

    def __init__(self, producer: Producer, source: _Source | None, *, is_shown: bool) -> None:
        self._producer = producer
        self._source = source
        self._waiting = producer.spool.waiting
        self._bar = Bar(is_shown=is_shown and (source is not None or self._waiting > 0))

    def show(self) -> None:
        """Draw the share that is done."""
        spool, events = self._producer.spool, f"{self._producer.stats().acknowledged} events"
        if self._source is None:
            share = 1 - spool.waiting / self._waiting if self._waiting else 1.0
        elif self._source.size:
            share = (self._source.bytes_read - spool.waiting_bytes) / self._source.size
        else:  # the total is unknown
            self._bar.draw_text(events)
            return
        self._bar.draw(share, events)

    def end(self) -> None:
        """End the bar's line."""
        self._bar.end()


def _age(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"tooltrail: {text}\n")
