"""A witness: signs the checkpoints of logs that it knows, each only if it continues the last one.

A folder of plain files, which one or more processes may use at once:

    key                       the private key: base64, readable by its owner only
    name.txt                  the witness's name
    cosigned/<log>.txt        the last note that was signed, of each log
    refused/<note>.txt        notes that a log signed and that contradict the last one: evidence
    lock                      one request at a time reads and writes

`<log>` is the SHA-256 of the log's name, `<note>` that of the note. The last note is on the disk
before its signature is given out. So whenever the process is killed, it never signs two states that
contradict each other.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

from tooltrail.evidence.kept_files import write_whole
from tooltrail.ledger import (
    Checkpoint,
    FormatError,
    LedgerError,
    ProofError,
    SigningKey,
    VerifierKey,
    open_note,
    parse_note,
    verify_consistency,
)
from tooltrail.ledger.add_checkpoint import SIZE_TYPE, AddCheckpoint
from tooltrail.ledger.cosignature import WitnessKey, cosign
from tooltrail.ledger.keys import KEY_LENGTH
from tooltrail.ledger.lines import from_base64, to_base64

BODY_MAX = 65_536
"""Bytes of a request; one of ours has about 2,000."""
_REFUSED_MAX = 1_000
"""A log may contradict itself as often as it likes, and must not fill the disk."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request, as https://c2sp.org/tlog-witness has it."""

    status: HTTPStatus
    body: str
    media_type: str = "text/plain; charset=utf-8"


class Witness:
    """A witness in a folder. `logs` are the keys of the logs that it signs for.

    A log is known by the name in its key. Several keys may have one name.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        logs: Sequence[VerifierKey],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Open the folder, or begin one with a new key.

        Raises FormatError if the name is invalid or another one is in the folder, OSError,
        ImportError without the extra `verify`.
        """
        self._folder = folder
        self._now = now
        self._logs: dict[str, list[VerifierKey]] = {}
        for key in logs:
            self._logs.setdefault(key.name, []).append(key)
        folder.mkdir(parents=True, exist_ok=True)
        with self._turn():
            self._key = self._opened(name)
        self.key = WitnessKey(name, self._key.verifier.public)
        """The public key, for the logs and for everybody who verifies."""

    def answer(self, body: bytes) -> Answer:
        """Answer a request to sign. Raises OSError if the folder cannot be read or written."""
        try:
            request = AddCheckpoint.parse(body)
            text, _ = parse_note(request.note)
            new = Checkpoint.parse(text)
        except FormatError as error:
            return Answer(HTTPStatus.BAD_REQUEST, f"{error}\n")
        keys = self._logs.get(new.origin)
        if keys is None:
            return Answer(HTTPStatus.NOT_FOUND, "this witness does not know the log\n")
        try:
            open_note(request.note, keys)
        except LedgerError as error:
            return Answer(HTTPStatus.FORBIDDEN, f"{error}\n")
        if request.old > new.size:
            return Answer(HTTPStatus.BAD_REQUEST, "the old size is larger than the checkpoint's\n")
        with self._turn():
            return self._compared(request, new, text)

    def _compared(self, request: AddCheckpoint, new: Checkpoint, text: str) -> Answer:
        """Compare a checkpoint that its log has signed with the last one; sign it if it fits."""
        file = self._folder / "cosigned" / f"{_digest(new.origin.encode())}.txt"
        last = self._last(file)
        size = 0 if last is None else last.size
        if request.old != size:
            return Answer(HTTPStatus.CONFLICT, f"{size}\n", SIZE_TYPE)
        if last is not None and last.size == new.size and last.root != new.root:
            self._refuse(request.note)
            return Answer(HTTPStatus.CONFLICT, "this size was signed with another root\n")
        try:
            if last is None or last.size == 0:
                _check_first(request, new)
            else:
                verify_consistency(last.size, last.root, new.size, new.root, request.proof)
        except ProofError as error:
            if last is not None:
                self._refuse(request.note)
            return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error}\n")
        write_whole(file, request.note)
        return Answer(HTTPStatus.OK, str(cosign(text, self._key, int(self._now().timestamp()))))

    @staticmethod
    def _last(file: Path) -> Checkpoint | None:
        """The last signed checkpoint. Raises OSError if it was changed: then nothing is signed."""
        if not file.exists():
            return None
        try:
            return Checkpoint.parse(parse_note(file.read_bytes())[0])
        except FormatError as error:
            raise OSError(f"{file} was changed: {error}") from error

    def _refuse(self, note: bytes) -> None:
        folder = self._folder / "refused"
        if not folder.exists() or len(list(folder.iterdir())) < _REFUSED_MAX:
            write_whole(folder / f"{_digest(note)}.txt", note)

    def _opened(self, name: str) -> SigningKey:
        named, file = self._folder / "name.txt", self._folder / "key"
        if not file.exists():
            if (self._folder / "cosigned").exists():
                raise FormatError(f"{file} is missing, but this witness has signed: restore it")
            SigningKey(name, bytes(KEY_LENGTH))  # checks the name before anything is written
            write_whole(named, f"{name}\n".encode())
            write_whole(file, f"{to_base64(os.urandom(KEY_LENGTH))}\n".encode(), mode=0o600)
        if (there := named.read_text("utf-8").strip()) != name:
            raise FormatError(f"the witness in this folder is {there}, not {name}")
        text = file.read_text("utf-8").strip()
        return SigningKey(name, from_base64(text, f"the key in {file}", KEY_LENGTH))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One request at a time, of all threads and processes that use the folder."""
        with (self._folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _check_first(request: AddCheckpoint, new: Checkpoint) -> None:
    """Raise ProofError unless a log that was never signed, or was empty, may be signed."""
    if request.proof:
        raise ProofError("the proof from an empty log must be empty")
    if new.size == 0:
        verify_consistency(0, new.root, 0, new.root, ())


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
