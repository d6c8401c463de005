"""`tooltrail verify`: check an evidence bundle without a server.

Owns the command line and its output. `tooltrail.evidence` does the checking.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooltrail.cli.bar import Bar
from tooltrail.ledger import FormatError, LedgerError, VerifierKey
from tooltrail.ledger.cosignature import WitnessKey

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

EXIT_CODES = (
    "Exit codes: 0 genuine, 1 altered, 2 usage error, unreadable bundle, or a requested check "
    "that is not possible with it."
)
_NOTE_BYTES = 1_000_000


def add_parser(verbs: Any) -> None:
    """Add `verify` to the command line."""
    parser = verbs.add_parser(
        "verify",
        help="verify an evidence bundle offline",
        description="Verify that an evidence bundle is complete, unedited and part of the signed "
        "ledger. Needs no server. Needs the extra: pip install 'tooltrail[verify]'.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("bundle", help="the zip file")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        help="a trusted public key (name+id+key) or a file of keys; default: the bundle's keys",
    )
    parser.add_argument(
        "--previous",
        action="append",
        default=[],
        metavar="CHECKPOINT",
        help="a file with an earlier checkpoint, to verify that the ledger only grew since",
    )
    parser.add_argument(
        "--acknowledged",
        metavar="FILE",
        help="what the server acknowledged last to an executor (acknowledged.json in the SDK's "
        "spool, or its folder): fail if the bundle lacks or contradicts it",
    )
    parser.add_argument(
        "--witness",
        action="append",
        default=[],
        metavar="KEY",
        help="the public key (name+id+key) of a witness that you trust, or a file of keys",
    )
    parser.add_argument(
        "--policy",
        metavar="MofN",
        help="how many of the witnesses must vouch for all entries, such as 2of3; default: all",
    )
    parser.add_argument(
        "--tsa",
        action="append",
        default=[],
        metavar="CA.pem",
        help="certificates of a time authority (RFC 3161) that you trust: its root, and those "
        "between. Needs the extra timestamp",
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check the bundle and print the verdict. Returns the exit code."""
    # Imported here, because it is slow and the other commands do not need it.
    from tooltrail.evidence import Archive, Policy, UnreadableError, read_acknowledged, verify

    bar = Bar(is_shown=sys.stderr.isatty() and not options.json)

    def show(done: int, total: int) -> None:
        bar.draw(done / total if total else 1.0, f"{done:,} of {total:,} entries")

    try:
        trusted = [key for given in options.key for key in keys_in(given)]
        previous = [_read(Path(given)) for given in options.previous]
        kept = options.acknowledged
        witnesses = [key for given in options.witness for key in witness_keys_in(given)]
        authorities = [each for pem in options.tsa for each in _certificates_in(Path(pem))]
        if options.policy is not None and not witnesses:
            raise FormatError("--policy needs the keys of witnesses: --witness")
        with Archive(Path(options.bundle)) as archive:
            verdict = verify(
                archive,
                trusted=trusted,
                previous=previous,
                acknowledged=None if kept is None else read_acknowledged(Path(kept)),
                authorities=authorities,
                policy=Policy.of(witnesses, options.policy) if witnesses else None,
                progress=show,
            )
    except (UnreadableError, LedgerError, ImportError) as error:
        bar.end()
        if options.json:
            sys.stdout.write(json.dumps({"genuine": None, "error": str(error)}) + "\n")
        sys.stderr.write(f"tooltrail: {options.bundle} cannot be checked: {error}\n")
        return 2
    bar.end()
    if options.json:
        sys.stdout.write(json.dumps(verdict.document()) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in verdict.lines())
    if not verdict.is_genuine:
        return 1
    return 2 if verdict.is_undecided else 0


def keys_in(given: str) -> list[VerifierKey]:
    """Read a key argument: one key itself, or a file of keys. Raises FormatError."""
    return [VerifierKey.parse(line) for line in _vkeys_in(given)]


def witness_keys_in(given: str) -> list[WitnessKey]:
    """Read the argument of a witness's key in the same way. Raises FormatError."""
    return [WitnessKey.parse(line) for line in _vkeys_in(given)]


def _certificates_in(path: Path) -> list["Certificate"]:
    from tooltrail.ledger.timestamp import read_certificates

    return read_certificates(_read(path))


def _vkeys_in(given: str) -> list[str]:
    if given.count("+") >= 2 and not Path(given).exists():
        return [given]
    try:
        return _read(Path(given)).decode().split()
    except UnicodeDecodeError as error:
        raise FormatError(f"{given} is not a file of keys") from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_NOTE_BYTES)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from error
