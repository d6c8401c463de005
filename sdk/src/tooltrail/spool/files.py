"""The event files of a home: their names, and what a dead process left in them."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from tooltrail.spool.batch import Batch, new_batch_id
from tooltrail.spool.home import note_path, read_note, taken_homes, write_note
from tooltrail.spool.lines import salvage
from tooltrail.spool.losses import Loss, held_in

OPEN, SEALED, SLIM, PART, REPLACED = ".open", ".batch", ".slim", ".part", ".replaced"


def file_name(batch: Batch) -> str:
    """The name of a batch's file: its id, first number and count."""
    suffix = SLIM if batch.is_slim else SEALED
    return f"{batch.id}.{batch.first_seq}.{batch.count}{suffix}"


def parse_name(path: Path) -> Batch:
    """Read a batch from its file's name, with size 0. An invalid name gives a new batch."""
    is_slim = path.suffix == SLIM
    with suppress(ValueError):
        if path.suffix == OPEN:
            return Batch(new_batch_id(), int(path.stem), 0, 0)
        batch_id, first, count = path.stem.split(".")
        return Batch(str(UUID(batch_id)), int(first), int(count), 0, is_slim)
    return Batch(new_batch_id(), 0, 0, 0, is_slim)


def finish_replacements(home: Path) -> None:
    """Complete or undo the replacements that a dead process had begun. Raises OSError."""
    replaced = {path.stem for path in home.glob(f"*{REPLACED}")}
    for part in home.glob(f"*{PART}"):
        old_id, plus, name = part.name.removesuffix(PART).partition("+")
        if plus and old_id in replaced:
            part.rename(home / name)
        else:
            part.unlink()
    for old_id in replaced:
        (home / f"{old_id}{REPLACED}").unlink()


def settle_note(home: Path) -> list[Loss]:
    """Compute the losses of a dead process, and note them. Raises OSError.

    Rewrites its note with exactly these, because the files it is computed from will be moved.
    """
    lost = read_losses(home)
    if lost:
        lock = os.open(note_path(home), os.O_RDWR)
        try:
            write_note(lock, lost)
        finally:
            os.close(lock)
    return lost


def read_losses(home: Path) -> list[Loss]:
    """Compute the losses of a dead process: its note without the numbers in its files.

    Raises OSError.
    """
    noted = read_note(home)
    if not noted:
        return []
    held: dict[str, list[range]] = {}
    for path in home.iterdir():
        if path.suffix in (OPEN, SEALED, SLIM):
            lines = salvage(path.read_bytes(), parse_name(path).first_seq).lines
            for loss in held_in(lines, ""):
                held.setdefault(loss.producer_id, []).append(loss.numbers)
    return [part for loss in noted for part in loss.without(held.get(loss.producer_id, ()))]


def read_home(home: Path) -> list[tuple[Path, int]]:
    """Each event file in a home and its number of lines, for display."""
    files = []
    with suppress(OSError):
        for taken in taken_homes(home):
            files += read_home(taken)
        for path in sorted(home.iterdir()):
            if path.suffix in (SEALED, SLIM):
                files.append((path, parse_name(path).count))
            elif path.suffix == OPEN:
                with suppress(OSError):
                    files.append((path, path.read_bytes().count(b"\n")))
    return files
