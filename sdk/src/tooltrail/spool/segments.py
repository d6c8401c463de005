"""The durable spool: one file per segment. It takes over what dead processes left.

Owns writing, sealing, reading and adopting segment files. `files` owns their names, `home` the
folders, `base` the numbering and the limits.

A batch is replaced by others (when it is split or loses its payloads) in three steps, so that a
kill at any point leaves either the old batch or the new ones to send:
1. the new ones are written as `<old id>+<new name>.part`;
2. the old file is renamed to `<old id>.replaced`: from here on the new ones count;
3. the parts get their names and the old file is removed.
"""

import math
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tooltrail.spool.acknowledged import keep_acknowledged
from tooltrail.spool.base import SPILL_BYTES, Spool
from tooltrail.spool.batch import Batch, DamagedError, new_batch_id
from tooltrail.spool.files import (
    OPEN,
    PART,
    REPLACED,
    SEALED,
    SLIM,
    file_name,
    finish_replacements,
    parse_name,
    settle_note,
)
from tooltrail.spool.home import (
    ORIGIN,
    REJECTED,
    claimed,
    homes,
    is_begun,
    make_home,
    prune,
    remove_home,
    take,
    taken_homes,
    write_note,
)
from tooltrail.spool.lines import (
    LINE_OVERHEAD,
    Salvage,
    numbers,
    open_lines,
    salvage,
    seal_line,
)
from tooltrail.spool.losses import Loss, damage

_CLOCKS_DIFFER_SECONDS = 60.0  # the file system's clock may be that of another machine
REJECTED_SHARE = 4  # rejected batches may take a quarter of the limit; the newest stay


class SegmentSpool(Spool):
    """Events are in a file before `append` returns; with `fsync`, on the disk.

    If the disk rejects writes, up to `spill_bytes` wait in memory and are written to file as
    soon as possible, because the server may still accept them.
    Nothing is created in the file system before the first event.
    """

    def __init__(
        self,
        root: Path,
        max_bytes: int,
        on_ready: Callable[[], None],
        *,
        fsync: bool = False,
        spill_bytes: int = SPILL_BYTES,
    ) -> None:
        super().__init__(max_bytes, on_ready, spill_bytes=spill_bytes)
        self._root = root
        self._home = root / self.producer_id
        self._root_max_bytes = max_bytes
        self._fsync = fsync
        self._lock_fd = -1
        self._fd = -1
        self._path = self._home

    def close(self) -> None:
        with self._lock:
            self.declare()
            self.seal()
            self._bring_home()
            for batch in self.batches():
                if self._loose.get(batch) is not None:
                    self.give_up(batch, "no-file")
            if self._lock_fd < 0:
                return
            if self._fd >= 0:  # opened, but the disk accepted no line
                descriptor, self._fd = self._fd, -1
                os.close(descriptor)
                self._path.unlink(missing_ok=True)
            if not self._noted:  # else the next process declares the losses in the note
                with suppress(OSError):
                    remove_home(self._home)
            os.close(self._lock_fd)
            self._lock_fd = -1

    def keep_acknowledged(self, kept: dict[str, Any]) -> None:
        with suppress(OSError):
            keep_acknowledged(self._root, kept, fsync=self._fsync)

    def abandon(self) -> None:
        super().abandon()
        # Closing a copy of a descriptor does not release the parent's lock.
        for descriptor in (self._fd, self._lock_fd):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)
        self._fd = self._lock_fd = -1

    def adopt(self, seconds: float = math.inf) -> None:
        self._bring_home()
        deadline = time.monotonic() + seconds
        elsewhere, living = 0, 1
        for taken in taken_homes(self._home):  # what the disk did not let us take before
            with suppress(OSError):
                self._empty(taken)
        for home in homes(self._root):
            if home == self._home:
                continue
            if time.monotonic() > deadline:
                return
            with claimed(home) as is_dead, suppress(OSError):
                if is_dead:
                    self._take_over(home)
                elif home.exists():
                    living += 1
                    elsewhere += sum(path.stat().st_size for path in home.iterdir())
        # A quiet process keeps its fair share even if another one writes a lot.
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
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise

    def _open_segment(self) -> None:
        self._path = self._home / f"{self._open_first_seq:012d}{OPEN}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._settle()
        try:
            self._fd = os.open(self._path, flags, 0o600)
        except FileNotFoundError:  # someone has removed the folder
            os.close(self._lock_fd)
            self._lock_fd = -1
            self._settle()
            self._fd = os.open(self._path, flags, 0o600)
        self._sync(self._home)

    def _settle(self) -> None:
        with self._lock:
            if self._lock_fd < 0:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                if is_begun(self._home):  # an interrupt stopped us while making it, lock held
                    self._home = self._root / f"{self.producer_id}+{secrets.token_hex(4)}"
                self._lock_fd = make_home(self._root, self._home.name)
                self._noted = []
                self._note()  # losses from before there was a file for the note
                self._sync(self._root)

    def _write_note(self, losses: list[Loss]) -> bool:
        if self._lock_fd < 0:
            return False
        try:
            write_note(self._lock_fd, losses)
            if self._fsync:
                os.fdatasync(self._lock_fd)
        except OSError:
            return False
        return True

    def _in_memory(self) -> int:
        loose = sum(b.count for b in self._sealed if self._loose.get(b) is not None)
        return loose + self._loose.line_count + len(self._losses)

    def _close_segment(self, batch: Batch) -> None:
        descriptor, self._fd = self._fd, -1  # first: after an interrupt it may be another file's
        os.close(descriptor)
        self._path.rename(self._batch_path(batch))
        self._sync(self._home)

    def _sync(self, path: Path) -> None:
        """Flush a file's bytes, or a folder's names, to the disk; only in mode `fsync`."""
        if self._fsync:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _write_file(self, path: Path, lines: list[bytes]) -> None:
        path.write_bytes(b"".join(map(seal_line, lines)))
        self._sync(path)

    # Batches

    def _batch_path(self, batch: Batch) -> Path:
        return self._home / file_name(batch)

    def _store(self, batch: Batch, lines: list[bytes]) -> None:
        self._settle()
        target = self._batch_path(batch)
        draft = target.with_suffix(PART)
        try:
            self._write_file(draft, lines)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        draft.rename(target)
        self._sync(self._home)

    def _bring_home(self) -> None:
        """Write to file, under their ids, the batches in memory that the disk had rejected."""
        self._alone(self._seal_spilled)
        with suppress(OSError):
            for batch in self.batches():
                lines = self._loose.get(batch)
                if lines is not None:
                    self._store(batch, lines)
                    with self._lock:
                        if self._loose.drop(batch):
                            own = numbers(lines).get(self.producer_id, ())
                            self._unwritten -= sum(map(len, own))
                            self._note()

    def _erase(self, batch: Batch) -> None:
        self._batch_path(batch).unlink(missing_ok=True)

    def _swap(self, batch: Batch, parts: list[tuple[Batch, list[bytes]]]) -> None:
        drafts = [(self._home / f"{batch.id}+{file_name(p)}{PART}", p) for p, _ in parts]
        try:
            for (draft, _), (_, lines) in zip(drafts, parts, strict=True):
                self._write_file(draft, lines)
        except OSError:
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)
            raise
        old = self._home / f"{batch.id}{REPLACED}"
        self._batch_path(batch).rename(old)
        for draft, part in drafts:
            draft.rename(self._batch_path(part))
        self._sync(self._home)
        old.unlink()

    def _read(self, batch: Batch) -> list[bytes]:
        data = self._batch_path(batch).read_bytes()
        if data.count(b"\n") != batch.count or not data.endswith(b"\n"):
            raise DamagedError(f"batch {batch.id} does not hold {batch.count} lines")
        return open_lines(data)

    def _salvage(self, batch: Batch) -> Salvage:
        return salvage(self._batch_path(batch).read_bytes(), batch.first_seq, batch.count)

    def _lay_aside(self, batch: Batch, reason: str) -> None:
        folder = self._root / REJECTED
        folder.mkdir(mode=0o700, exist_ok=True)
        self._batch_path(batch).rename(folder / f"{batch.id}.ndjson")
        with suppress(OSError):  # a full disk keeps the batch, but maybe not the reason
            (folder / f"{batch.id}.reason").write_text(reason + "\n")
        prune(folder, self._root_max_bytes // REJECTED_SHARE)

    # Adoption

    def _take_over(self, home: Path) -> None:
        """Move a dead process's events into this process's home. Raises OSError."""
        self._settle()
        self._empty(take(home, self._home))

    def _empty(self, home: Path) -> None:
        for taken in taken_homes(home):
            with suppress(OSError):  # it stays in there; the rest is taken anyway
                self._empty(taken.rename(self._home / taken.name))
        finish_replacements(home)
        lost = settle_note(home)
        for path in sorted(home.iterdir()):
            if path.suffix in (OPEN, SEALED, SLIM):
                with suppress(OSError):  # this file stays; the others are taken anyway
                    self._take_segment(path)
        if lost:
            self._store_gaps(lost)
        remove_home(home)

    def _store_gaps(self, losses: list[Loss]) -> None:
        """Declare the events that a dead process had only in memory. Raises OSError."""
        self.enqueue([loss.event() for loss in losses])
        for loss in losses:
            self._count_lost(loss.reason, len(loss.numbers))

    def _take_segment(self, path: Path) -> None:
        batch = parse_name(path)
        salvaged = salvage(path.read_bytes(), batch.first_seq, batch.count)
        whole = not salvaged.lost
        batch_id = batch.id if whole else new_batch_id()  # different bytes need another id
        owner = next(iter(numbers(salvaged.lines)), path.parent.name.partition("+")[0])
        # In one file: no other file has these losses.
        lines = salvaged.lines + damage(owner, salvaged)
        count = len(lines)
        size = sum(map(len, lines)) + LINE_OVERHEAD * count
        order, since = self._sealed.take_order(), time.monotonic() - self._age_of(batch)
        mine = Batch(
            id=batch_id,
            first_seq=batch.first_seq,
            count=count,
            size=size,
            is_slim=batch.is_slim,
            order=order,
            since=since,
        )
        if whole and lines:
            path.rename(self._batch_path(mine))
        elif lines:
            self._store(mine, lines)
        self._count_damage(salvaged)
        if lines:
            with self._lock:
                self._sealed.add_old(mine)
                self.adopted += count
        path.unlink(missing_ok=True)

    def _age_of(self, batch: Batch) -> float:
        """Seconds since another process sealed the batch, from the time in the batch's id.

        An id older than the spool itself comes from a wrong clock, so the age is unknown and
        counts as 0.
        """
        sealed_at = int(batch.id.replace("-", "")[:12], 16) / 1000  # a UUIDv7 begins with ms
        with suppress(OSError):
            if sealed_at >= (self._root / ORIGIN).stat().st_mtime - _CLOCKS_DIFFER_SECONDS:
                return max(time.time() - sealed_at, 0.0)
        return 0.0
