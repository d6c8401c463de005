"""`tooltrail verify-record`: prove one record that was taken out of a SIEM.

Owns the command line, its output and the requests. `tooltrail.evidence.record` does the checking.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooltrail.ledger import FormatError, LedgerError, ProofFile, VerifierKey
from tooltrail.settings import Settings
from tooltrail.transport import Transport, UnreachableError

if TYPE_CHECKING:
    from tooltrail.evidence.record import RecordKeys

EXIT_CODES = (
    "Exit codes: 0 genuine, 1 altered, 2 usage error, not a record, or a record without a proof "
    "and neither a server nor a bundle that has it."
)
_RECORD_BYTES = 64 << 20


def add_parser(verbs: Any) -> None:
    """Add `verify-record` to the command line."""
    parser = verbs.add_parser(
        "verify-record",
        help="prove a record that was taken out of a SIEM",
        description="Verify that a record of a stream is as the server sent it, and that its entry "
        "is in the signed ledger. Needs the extra: pip install 'tooltrail[verify]'.",
        epilog=EXIT_CODES,
    )
    parser.add_argument(
        "record", help="a file with a record, or one record a line; - for standard input"
    )
    parser.add_argument(
        "--keys",
        metavar="KEYS.jwks",
        help="the trusted keys: /api/v1/ledger/keys.jwks of the server, kept since. Default: those "
        "that the server of --server names now",
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        help="ask this server for keys and proofs that are missing. TOOLTRAIL_API_KEY needs the "
        "scope read",
    )
    parser.add_argument(
        "--bundle", metavar="ZIP", help="an evidence bundle that must have the same entry"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON a record")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check the records and print a verdict for each. Returns the exit code."""
    # Imported here, because it is slow and the other commands do not need it.
    from tooltrail.evidence import UnreadableError
    from tooltrail.evidence.record import RecordKeys, verify_record

    worst = 0
    with ExitStack() as stack:
        try:
            server = None
            if options.server:
                server = _Server(options.server)
                stack.callback(server.close)
            if options.keys:
                keys = RecordKeys.parse(Path(options.keys).read_bytes())
            elif server is not None:
                keys = RecordKeys.parse(server.read("ledger/keys.jwks"))
            else:
                raise FormatError("give the trusted keys (--keys), or the server (--server)")
            raw_at = None
            if options.bundle:
                raw_at = _bundle(Path(options.bundle), keys)
            count = 0
            for record in _records(options.record):
                verdict = verify_record(
                    record, keys, fetch=None if server is None else server.proof, raw_at=raw_at
                )
                if options.json:
                    sys.stdout.write(json.dumps(verdict.document()) + "\n")
                else:
                    sys.stdout.writelines(f"{line}\n" for line in verdict.lines())
                code = 1 if not verdict.is_genuine else 2 if verdict.is_undecided else 0
                worst = code if worst != 1 and code else worst
                count += 1
            if not count:
                raise FormatError("there is no record")
        except (LedgerError, UnreadableError, UnreachableError, OSError, ImportError) as error:
            if options.json:
                sys.stdout.write(json.dumps({"genuine": None, "error": str(error)}) + "\n")
            sys.stderr.write(f"tooltrail: {options.record} cannot be checked: {error}\n")
            return 1 if worst == 1 else 2
    if not options.json and not options.keys:
        sys.stdout.write(
            "The server itself named the keys. Keep its keys.jwks, and give it with --keys.\n"
        )
    return worst


def _records(path: str) -> Iterator[dict[str, Any]]:
    """The records of a file: the whole file is one, or each line is. Raises FormatError."""
    from tooltrail.evidence.record import read_record

    if path == "-":
        data = sys.stdin.buffer.read(_RECORD_BYTES + 1)
    else:
        with Path(path).open("rb") as file:
            data = file.read(_RECORD_BYTES + 1)
    if len(data) > _RECORD_BYTES:
        raise FormatError(f"it has more than {_RECORD_BYTES >> 20} MiB; split it")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FormatError("it is not UTF-8") from error
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        yield read_record(text)
        return
    except FormatError:
        if len(lines) < 2:
            raise
    for number, line in enumerate(lines, 1):
        try:
            yield read_record(line)
        except FormatError as error:
            raise FormatError(f"line {number}: {error}") from error


def _bundle(path: Path, keys: "RecordKeys") -> "Callable[[int], tuple[bytes, bytes] | None]":
    """Verify a bundle, and read from it. Raises FormatError unless it is genuine."""
    from tooltrail.evidence import Archive, verify
    from tooltrail.evidence.lookup import entry_in, origin_of

    with Archive(path) as archive:
        origin = origin_of(archive)
        trusted = [VerifierKey(origin, public) for public in keys.ledger]
        verdict = verify(archive, trusted=trusted)
    if not verdict.is_genuine:
        raise FormatError(f"{path} is not genuine: tooltrail verify says what is wrong")

    def raw_at(index: int) -> tuple[bytes, bytes] | None:
        with Archive(path) as again:
            return entry_in(again, index)

    return raw_at


class _Server:
    """A server that gives keys and proofs."""

    def __init__(self, url: str) -> None:
        settings = Settings.resolve(url=url)
        if not settings.url or not settings.api_key:
            raise FormatError("set TOOLTRAIL_API_KEY to a key with the scope read")
        agent = f"tooltrail-verify-record/{version('tooltrail')}"
        self._transport = Transport(settings.url, settings.api_key, agent)

    def proof(self, index: int) -> ProofFile:
        """The proof of an entry, against the newest checkpoint. Raises FormatError."""
        return ProofFile.parse(self.read(f"ledger/entries/{index}.tlog-proof"))

    def read(self, path: str) -> bytes:
        """What the server answers. Raises FormatError unless it is 200."""
        status, data = self._transport.get_bytes(path)
        if status != 200:
            raise FormatError(f"the server returned {status} for {path}")
        return data

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()
