"""The auditor's own checkpoints: fetched, checked against the last one, kept.

A folder of plain files, which people can read and copy:

    origin.txt              the ledger's name
    keys.txt                trusted public keys, one per line
    checkpoints/<size>.txt  signed notes, each proved to continue the one before
    refused/<time>-….txt    rejected notes as received, and the reason beside each
    epochs/<number>/…       the same files, for the ledger as it was restarted after a restore

If no keys are given, the first request trusts the keys that the server names. Later, a new key
is accepted only if a trusted key signed the same checkpoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from tooltrail.evidence.epochs import parse_origin, under_name
from tooltrail.evidence.kept_files import write_whole
from tooltrail.ledger import (
    Checkpoint,
    FormatError,
    LedgerError,
    Tile,
    VerifierKey,
    consistency_proof,
    open_note,
    parse_note,
    subtrees_in,
    tree_root,
    verify_consistency,
)
from tooltrail.ledger.lines import shown

type Outcome = Literal["first", "unchanged", "grown", "restarted", "altered"]
"""`restarted`: the ledger was restarted, and its entries continue some kept checkpoint."""


_EPOCHS = "epochs"


class Source(Protocol):
    """Where a ledger is published. Each method raises what its transport raises."""

    def checkpoint(self) -> bytes:
        """The newest signed note."""

    def tile(self, tile: Tile) -> bytes:
        """A tile's hashes."""

    def public_keys(self) -> list[str]:
        """The public keys that the server names."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of fetching and checking a checkpoint; `file` is where it was kept, if it was."""

    outcome: Outcome
    message: str
    size: int | None
    root: bytes | None
    file: Path | None


class Watch:
    """One ledger, watched from one folder."""

    def __init__(self, folder: Path, trusted: Sequence[VerifierKey] = ()) -> None:
        self._root = folder
        self._trusted = tuple(trusted)
        epochs = [int(each.name) for each in (folder / _EPOCHS).glob("[1-9]*")]
        self._folder = folder / _EPOCHS / str(max(epochs)) if epochs else folder

    def observe(self, source: Source, now: datetime) -> Observation:
        """Fetch the newest checkpoint and check it against the last one kept.

        Raises FormatError if it is not a checkpoint or the folder is damaged, OSError if the
        folder cannot be written, ImportError without the extra `verify`, and what `source`
        raises.
        """
        note = source.checkpoint()
        text, _ = parse_note(note)
        checkpoint = Checkpoint.parse(text)
        last = self._last()
        named = [] if self._trusted else [VerifierKey.parse(each) for each in source.public_keys()]
        try:
            if self._is_begun_again(checkpoint.origin):
                return self._follow(note, checkpoint, source)
            keys = self._check_signature(note, checkpoint.origin, named)
            if last is not None:
                self._check_growth(last, checkpoint, source)
        except LedgerError as error:
            file = self._refuse(note, str(error), now)
            return Observation("altered", str(error), checkpoint.size, checkpoint.root, file)
        self._keep_keys(checkpoint.origin, keys)
        if last is not None and last.size == checkpoint.size:
            message = f"unchanged at {checkpoint.size:,} entries"
            return Observation("unchanged", message, checkpoint.size, checkpoint.root, None)
        file = self._folder / "checkpoints" / f"{checkpoint.size:012d}.txt"
        write_whole(file, note)
        if last is None:
            message = f"first checkpoint stored, with {checkpoint.size:,} entries"
            return Observation("first", message, checkpoint.size, checkpoint.root, file)
        message = f"grown from {last.size:,} to {checkpoint.size:,} entries; nothing else changed"
        return Observation("grown", message, checkpoint.size, checkpoint.root, file)

    def _is_begun_again(self, origin: str) -> bool:
        """Whether this is a later epoch of the ledger in the folder."""
        kept = self._kept("origin.txt")
        if not kept:
            return False
        base, number = parse_origin(kept[0])
        return parse_origin(origin)[0] == base and parse_origin(origin)[1] > number

    def _follow(self, note: bytes, new: Checkpoint, source: Source) -> Observation:
        """Continue with a later epoch in a folder of its own; report what is left of the last one.

        Raises LedgerError if no trusted key signed it, or if it continues no kept checkpoint.
        """
        kept = [VerifierKey.parse(each) for each in self._kept("keys.txt")]
        keys = under_name([*self._trusted, *kept], new.origin)
        open_note(note, keys)
        checkpoints = self._checkpoints()
        proved = 0
        for each in checkpoints:
            if 0 < each.size <= new.size and self._is_continued(each, new, source):
                proved = max(proved, each.size)
        last = max((each.size for each in checkpoints), default=0)
        if last and not proved:
            raise LedgerError(
                f"THE LEDGER WAS REPLACED: it was restarted as {shown(new.origin)}, and its "
                f"{new.size:,} entries continue none of the stored checkpoints"
            )
        self._folder = self._root / _EPOCHS / str(parse_origin(new.origin)[1])
        file = self._folder / "checkpoints" / f"{new.size:012d}.txt"
        write_whole(file, note)
        self._keep_keys(new.origin, [key for key in keys if key.name == new.origin])
        gone = (
            f"ENTRIES ARE GONE OR CHANGED: of {last:,} entries the first {proved:,} are proved to "
            "be there unchanged"
            if last > proved
            else f"all {last:,} entries are there unchanged"
        )
        message = f"the ledger was restarted as {new.origin}; {gone}"
        return Observation("restarted", message, new.size, new.root, file)

    @staticmethod
    def _is_continued(old: Checkpoint, new: Checkpoint, source: Source) -> bool:
        read = subtrees_in(source.tile, new.size)
        try:
            proof = [] if old.size == new.size else consistency_proof(old.size, new.size, read)
            verify_consistency(old.size, old.root, new.size, new.root, proof)
        except LedgerError:
            return False
        return True

    def _last(self) -> Checkpoint | None:
        checkpoints = self._checkpoints(newest=1)
        return checkpoints[-1] if checkpoints else None

    def _checkpoints(self, *, newest: int | None = None) -> list[Checkpoint]:
        """The kept checkpoints, smallest first. Raises FormatError if one was changed."""
        files = sorted((self._folder / "checkpoints").glob("*.txt"))
        kept = []
        for file in files[-newest:] if newest else files:
            try:
                text, _ = parse_note(file.read_bytes())
                kept.append(Checkpoint.parse(text))
            except FormatError as error:
                raise FormatError(f"{file} was changed: {error}") from error
        return kept

    def _check_signature(
        self, note: bytes, origin: str, named: Sequence[VerifierKey]
    ) -> list[VerifierKey]:
        """Raise unless a trusted key signed it. Returns the keys to trust from now on."""
        known = self._kept("origin.txt")
        if known and known[0] != origin:
            raise FormatError(
                f"the ledger was {shown(known[0])}, and is {shown(origin)}: it is another ledger"
            )
        if self._trusted:
            trusted = under_name(self._trusted, origin)
            open_note(note, trusted)
            return trusted
        named = [key for key in named if key.name == origin]
        kept = [VerifierKey.parse(each) for each in self._kept("keys.txt")]
        if not kept:
            return list(open_note(note, named).signers)
        open_note(note, kept)
        # A key that signed the same checkpoint as a trusted key becomes trusted, too.
        signers = open_note(note, {*kept, *named}).signers
        return [*kept, *(key for key in signers if key not in kept)]

    def _check_growth(self, last: Checkpoint, new: Checkpoint, source: Source) -> None:
        if new.size < last.size:
            raise LedgerError(
                f"THE LEDGER SHRANK: it had {last.size:,} entries and now has {new.size:,}. Entries"
                " at its end were removed, or it was replaced by an older state"
            )
        read = subtrees_in(source.tile, new.size)
        proof: list[bytes] = []
        if last.size not in (0, new.size):
            proof = consistency_proof(last.size, new.size, read)
        try:
            verify_consistency(last.size, last.root, new.size, new.root, proof)
        except LedgerError:
            # Either the tiles are wrong, or they match the new root and contradict the old one.
            is_whole = new.size != last.size and tree_root(new.size, read) == new.root
            raise LedgerError(
                f"THE LEDGER WAS FORKED: its {new.size:,} entries do not start with the "
                f"{last.size:,} entries of the stored checkpoint. Recorded entries were altered"
                if is_whole or new.size == last.size
                else f"the tiles give no proof from {last.size:,} to {new.size:,} entries: the log "
                "cannot prove that it only grew"
            ) from None

    def _keep_keys(self, origin: str, keys: Sequence[VerifierKey]) -> None:
        for name, text in (
            ("origin.txt", f"{origin}\n"),
            ("keys.txt", "".join(f"{key}\n" for key in keys)),
        ):
            if self._kept(name) != text.split():
                write_whole(self._folder / name, text.encode())

    def _kept(self, name: str) -> list[str]:
        file = self._folder / name
        return file.read_text("utf-8").split() if file.exists() else []

    def _refuse(self, note: bytes, why: str, now: datetime) -> Path:
        stamp = f"{now:%Y%m%dT%H%M%SZ}"
        file = self._folder / "refused" / f"{stamp}-checkpoint.txt"
        write_whole(file, note)
        write_whole(file.with_name(f"{stamp}-why.txt"), f"{why}\n".encode())
        return file
