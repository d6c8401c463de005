"""The durable spool: one file per segment, and what dead processes left is taken over.

Owns writing, sealing, reading and adopting segment files; `home` owns the folders, `base` the
numbering and the budget's arithmetic.

A batch is replaced by others (a split, payloads given up) in three steps, so that a kill at
any point leaves either the old one or the new ones to send:
1. the new ones are written as `<old id>+<new name>.part`;
2. the old file is renamed to `<old id>.replaced`: from here on the new ones count;
3. the parts get their names and the old file is removed.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from tooltrail.spool.base import Batch, Spool, new_batch_id
from tooltrail.spool.home import REJECTED, claimed, homes, make_home, remove_home
from tooltrail.spool.lines import LINE_OVERHEAD, open_lines, salvage, seal_line

_OPEN, _SEALED, _SLIM, _PART, _REPLACED = ".open", ".batch", ".slim", ".part", ".replaced"


class SegmentSpool(Spool):
    """Events are in a file before `append` returns; with `fsync`, on the disk.

    Nothing is made in the file system before the first event.
    """

    def __init__(
        self, root: Path, max_bytes: int, on_ready: Callable[[], None], *, fsync: bool = False
    ) -> None:
        super().__init__(max_bytes, on_ready)
        self._root = root
        self._home = root / self.producer_id
        self._root_max_bytes = max_bytes
        self._fsync = fsync
        self._lock_fd = -1
        self._fd = -1
        self._path = self._home
        self._length = 0  # of the open segment, as far as its lines are whole

    def read(self, batch: Batch) -> list[bytes]:
        path = self._batch_path(batch)
        data = path.read_bytes()
        if data.count(b"\n") == batch.count and data.endswith(b"\n"):
            return open_lines(data)
        found = salvage(data, batch.first_seq)
        for lost in found.lost:
            self._lose(self.producer_id, lost, "damaged")
        return found.lines

    def park(self, batch: Batch, reason: str) -> None:
        with self._lock:
            folder = self._root / REJECTED
            folder.mkdir(mode=0o700, exist_ok=True)
            self._batch_path(batch).rename(folder / f"{batch.id}.ndjson")
            self._forget(batch)
            with suppress(OSError):  # a full disk keeps the batch, if not the reason
                (folder / f"{batch.id}.reason").write_text(reason + "\n")

    def close(self) -> None:
        with self._lock:
            self.declare()
            self.seal()
            if self._lock_fd < 0:
                return
            with suppress(OSError):
                remove_home(self._home)
            os.close(self._lock_fd)
            self._lock_fd = -1

    def abandon(self) -> None:
        # Closing a copy of a descriptor does not release the parent's lock.
        for descriptor in (self._fd, self._lock_fd):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)
        self._fd = self._lock_fd = -1

    def adopt(self) -> None:
        elsewhere, living = 0, 1
        for home in homes(self._root):
            if home == self._home:
                continue
            with claimed(home) as is_dead, suppress(OSError):
                if is_dead:
                    self._take_over(home)
                else:
                    living += 1
                    elsewhere += sum(path.stat().st_size for path in home.iterdir())
        # A quiet process does not pay for a loud one: its fair share is always its own.
        total = self._root_max_bytes
        self.allowance = max(total - elsewhere, total // living)

    # Writing

    def _write(self, line: bytes) -> None:
        if self._fd < 0:
            self._open_segment()
        written = 0
        try:
            written = os.write(self._fd, line)
            if written != len(line):
                raise OSError(28, "No space left on device")
            if self._fsync:
                os.fdatasync(self._fd)
        except OSError:
            if written:
                os.ftruncate(self._fd, self._length)
            raise
        self._length += written

    def _open_segment(self) -> None:
        self._path = self._home / f"{self._open_first_seq:012d}{_OPEN}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._settle()
        try:
            self._fd = os.open(self._path, flags, 0o600)
        except FileNotFoundError:  # somebody has cleared the folder away
            os.close(self._lock_fd)
            self._lock_fd = -1
            self._settle()
            self._fd = os.open(self._path, flags, 0o600)
        self._length = 0
        if self._fsync:
            self._sync_home()

    def _settle(self) -> None:
        if self._lock_fd < 0:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = make_home(self._root, self.producer_id)

    def _close_segment(self, batch: Batch) -> None:
        os.close(self._fd)
        self._fd = -1
        self._path.rename(self._batch_path(batch))
        if self._fsync:
            self._sync_home()

    def _sync_home(self) -> None:
        folder = os.open(self._home, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    # Batches

    def _batch_path(self, batch: Batch) -> Path:
        return self._home / _file_name(batch)

    def _store(self, batch: Batch, lines: list[bytes]) -> None:
        self._settle()
        target = self._batch_path(batch)
        draft = target.with_suffix(_PART)
        draft.write_bytes(b"".join(map(seal_line, lines)))
        draft.rename(target)

    def _erase(self, batch: Batch) -> None:
        self._batch_path(batch).unlink(missing_ok=True)

    def _swap(self, batch: Batch, parts: list[tuple[Batch, list[bytes]]]) -> None:
        drafts = [(self._home / f"{batch.id}+{_file_name(p)}{_PART}", p) for p, _ in parts]
        try:
            for (draft, _), (_, lines) in zip(drafts, parts, strict=True):
                draft.write_bytes(b"".join(map(seal_line, lines)))
        except OSError:
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)
            raise
        old = self._home / f"{batch.id}{_REPLACED}"
        self._batch_path(batch).rename(old)
        for draft, part in drafts:
            draft.rename(self._batch_path(part))
        old.unlink()

    # Adoption

    def _take_over(self, home: Path) -> None:
        """Move a dead process's events into this process's home. Raises OSError."""
        self._settle()
        _finish_replacements(home)
        for path in sorted(home.iterdir()):
            if path.suffix == _OPEN:
                self._take_segment(path, Batch(new_batch_id(), int(path.stem), 0, 0))
            elif path.suffix in (_SEALED, _SLIM):
                self._take_segment(path, _parse_name(path))
        remove_home(home)

    def _take_segment(self, path: Path, batch: Batch) -> None:
        data = path.read_bytes()
        found = salvage(data, batch.first_seq)
        for lost in found.lost:
            self._lose(path.parent.name, lost, "damaged")
        whole = not found.lost
        if not whole:  # other bytes, so another id
            batch = Batch(new_batch_id(), batch.first_seq, 0, 0, batch.is_slim)
        count, order = len(found.lines), self._take_order()
        size = sum(map(len, found.lines)) + LINE_OVERHEAD * count
        batch = Batch(batch.id, batch.first_seq, count, size, batch.is_slim, order)
        if found.lines:
            if whole:
                path.rename(self._batch_path(batch))
            else:
                self._store(batch, found.lines)
            with self._lock:
                self._batches.append(batch)
                self._batches.sort(key=lambda each: each.id)
                self._sealed_bytes += batch.size
                self.adopted += batch.count
        path.unlink(missing_ok=True)
        self.declare()


def _file_name(batch: Batch) -> str:
    suffix = _SLIM if batch.is_slim else _SEALED
    return f"{batch.id}.{batch.first_seq}.{batch.count}{suffix}"


def _parse_name(path: Path) -> Batch:
    """Read a batch off its file's name; what is not of that form becomes a new batch."""
    is_slim = path.suffix == _SLIM
    try:
        batch_id, first, count = path.stem.split(".")
        return Batch(str(UUID(batch_id)), int(first), int(count), 0, is_slim)
    except ValueError:
        return Batch(new_batch_id(), 0, 0, 0, is_slim)


def _finish_replacements(home: Path) -> None:
    """Complete or undo what its process was replacing when it died."""
    replaced = {path.stem for path in home.glob(f"*{_REPLACED}")}
    for part in home.glob(f"*{_PART}"):
        old_id, plus, name = part.name.removesuffix(_PART).partition("+")
        if plus and old_id in replaced:
            part.rename(home / name)
        else:
            part.unlink()
    for old_id in replaced:
        (home / f"{old_id}{_REPLACED}").unlink()


def read_home(home: Path) -> list[tuple[Path, int]]:
    """Each file of events in a home and how many lines it holds, for people to look at."""
    found = []
    with suppress(OSError):
        for path in sorted(home.iterdir()):
            if path.suffix in (_SEALED, _SLIM):
                found.append((path, _parse_name(path).count))
            elif path.suffix == _OPEN:
                with suppress(OSError):
                    found.append((path, path.read_bytes().count(b"\n")))
    return found
