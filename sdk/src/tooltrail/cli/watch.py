"""`tooltrail watch`: keeps a ledger's checkpoints with the auditor, and checks each new one.

Owns the command line, its output and the requests. `tooltrail.evidence.watch` does the checking.
"""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tooltrail.cli.tables import tame
from tooltrail.cli.verify import keys_in
from tooltrail.settings import Settings
from tooltrail.transport import Transport, UnreachableError

if TYPE_CHECKING:
    from tooltrail.evidence.watch import Observation
    from tooltrail.ledger import Tile

FOLDER = "tooltrail-watch"
EVERY_SECONDS = 300.0
EXIT_CODES = (
    "Exit codes: 0 consistent, 1 the ledger was altered or restarted, 2 usage error, 3 (with "
    "--once) no checkpoint available."
)


class NoAnswerError(Exception):
    """The server did not return the requested data. The message says why."""


def add_parser(verbs: Any) -> None:
    """Add `watch` to the command line."""
    parser = verbs.add_parser(
        "watch",
        help="store a ledger's checkpoints, and verify that it only grows",
        description="Fetch the newest checkpoint, verify its signature and that the ledger only "
        "grew since the last one, and store it. The folder is evidence: keep it where the server's "
        "administrators cannot write. TOOLTRAIL_API_KEY needs the scope read.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("url", nargs="?", help="the server's URL (TOOLTRAIL_URL)")
    parser.add_argument("--folder", default=FOLDER, help=f"folder for the checkpoints ({FOLDER})")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        help="a trusted public key or a file of keys; default: the server's keys at the first run",
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--once", action="store_true", help="check once")
    pace.add_argument(
        "--every",
        type=_seconds,
        default=EVERY_SECONDS,
        metavar="SECONDS",
        help=f"interval of checks; stops when an alteration is found ({EVERY_SECONDS:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON per check")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Watch the ledger. Returns the exit code."""
    # Imported here, because it is slow and the other commands do not need it.
    from tooltrail.evidence.watch import Watch
    from tooltrail.ledger import LedgerError

    settings = Settings.resolve(url=options.url)
    if not settings.url or not settings.api_key:
        _complain("set TOOLTRAIL_URL and TOOLTRAIL_API_KEY")
        return 2
    try:
        trusted = [key for given in options.key for key in keys_in(given)]
    except LedgerError as error:
        _complain(str(error))
        return 2
    watch = Watch(Path(options.folder), trusted)
    server = _Server(settings.url, settings.api_key)
    try:
        while True:
            try:
                observation = watch.observe(server, datetime.now(UTC))
            except (NoAnswerError, UnreachableError, LedgerError) as error:
                _no_answer(str(error), as_json=options.json)
                if options.once:
                    return 3
            except (OSError, ImportError) as error:
                _complain(str(error))
                return 2
            else:
                _report(observation, as_json=options.json)
                if observation.outcome in ("altered", "restarted"):
                    return 1
                if options.once:
                    return 0
            time.sleep(options.every)
    finally:
        server.close()


class _Server:
    """The ledger as published by the API: C2SP tlog-tiles below `ledger/`."""

    def __init__(self, url: str, api_key: str) -> None:
        self._transport = Transport(url, api_key, f"tooltrail-watch/{version('tooltrail')}")

    def checkpoint(self) -> bytes:
        """The newest signed note."""
        return self._read("ledger/checkpoint")

    def tile(self, tile: "Tile") -> bytes:
        """A tile's hashes."""
        return self._read(f"ledger/{tile.path}")

    def public_keys(self) -> list[str]:
        """The public keys that the server names, on all pages of its list."""
        keys: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            data = self._read(f"ledger/keys?cursor={quote(cursor)}" if cursor else "ledger/keys")
            try:
                page = json.loads(data)
                keys += [str(key["vkey"]) for key in page["keys"]]
                cursor = page.get("next") or None
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise NoAnswerError(
                    "the response is not a Tooltrail server's list of keys"
                ) from error
        return keys

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _read(self, path: str) -> bytes:
        status, data = self._transport.get_bytes(path)
        if status != 200:
            raise NoAnswerError(_detail(data) or f"the server returned {status} for {path}")
        return data


def _detail(data: bytes) -> str:
    """The reason the server gives for an error; '' if there is none."""
    try:
        return tame(str(json.loads(data)["detail"]))
    except (ValueError, KeyError, TypeError):
        return ""


def _report(observation: "Observation", *, as_json: bool) -> None:
    if as_json:
        document = {
            "outcome": observation.outcome,
            "message": observation.message,
            "size": observation.size,
            "root": observation.root.hex() if observation.root is not None else None,
            "file": str(observation.file) if observation.file else None,
        }
        sys.stdout.write(json.dumps(document) + "\n")
    elif observation.outcome == "restarted":
        sys.stdout.write(f"RESTARTED  {observation.message}.\nKept: {observation.file}\n")
    elif observation.outcome == "altered":
        sys.stdout.write(f"ALTERED  {observation.message}.\nKept as evidence: {observation.file}\n")
    else:
        sys.stdout.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}  {observation.message}\n")
    sys.stdout.flush()


def _no_answer(why: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"outcome": "no answer", "message": why}) + "\n")
        sys.stdout.flush()
    else:
        _complain(f"no checkpoint available: {why}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= 86_400 * 7:
        raise argparse.ArgumentTypeError("must be 1 second to 7 days")
    return seconds


def _complain(text: str) -> None:
    sys.stderr.write(f"tooltrail: {text}\n")
