"""Reads an untrusted zip: nothing is unpacked to disk, and nothing is believed.

Every limit here is far above what a bundle needs. An archive beyond a limit is rejected with a
message that says so, before memory or time is spent.
"""

import re
import struct
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from tooltrail.evidence import layout
from tooltrail.ledger.lines import shown

MAX_MEMBERS = 500_000
MAX_DIRECTORY_BYTES = 64 << 20
MAX_MEMBER_BYTES = 64 << 20
FREE_BYTES = 1 << 30
MAX_RATIO = 200
"""A bundle may inflate to `FREE_BYTES` plus this many times its own size."""

_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_END_FORM = struct.Struct("<4s4H2LH")
_END64_FORM = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64_FORM = struct.Struct("<4sLQL")
_ENCRYPTED = 0x1
_ONES = (
    layout.README,
    layout.MANIFEST,
    layout.KEYS,
    layout.TREE,
    layout.ERASURES,
    layout.REGISTRY,
)
_SOMETIMES = (
    layout.REPORT,
    layout.STATEMENTS,
    layout.SAMPLE,
    layout.POPULATION,
    layout.TIMELINE,
    layout.TIMELINE_PAGE,
)
_CHUNK = re.compile(r"(entries|events)/(\d{6,9})\.ndjson")
_CHECKPOINT = re.compile(r"checkpoints/(\d{12,19})\.txt")
_MAX_CHECKPOINTS = 1_000


class UnreadableError(Exception):
    """This is not a bundle, it is damaged, or it is malicious. The message says which."""


class Archive:
    """The members of a bundle, by name. Raises UnreadableError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise UnreadableError(f"{path}: {error.strerror or error}") from error
        try:
            self._zip = self._opened(self._file)
            self._members = self._checked(self._zip.infolist(), path.stat().st_size)
        except (BadZipFile, struct.error, ValueError, OSError, NotImplementedError) as error:
            self._file.close()
            raise UnreadableError(f"not a zip file, or truncated ({error})") from error
        except UnreadableError:
            self._file.close()
            raise
        self.chunks = sum(name.startswith("entries/") for name in self._members)
        self.checkpoints = sorted(
            (int(match[1]), name)
            for name in self._members
            if (match := _CHECKPOINT.fullmatch(name))
        )
        self.has_report = layout.REPORT in self._members
        self.has_statements = layout.STATEMENTS in self._members
        self.has_sample = layout.SAMPLE in self._members
        self.has_timeline = layout.TIMELINE in self._members

    def __enter__(self) -> "Archive":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()
        self._file.close()

    def read(self, name: str) -> bytes:
        """Read a whole member. Raises UnreadableError."""
        member = self._members[name]
        try:
            with self._zip.open(member) as file:
                data = file.read(member.file_size + 1)
        except (BadZipFile, zlib.error, EOFError, OSError, struct.error, ValueError) as error:
            raise UnreadableError(f"{name} is damaged ({error})") from error
        except (NotImplementedError, RuntimeError) as error:
            raise UnreadableError(f"{name} uses an unsupported compression ({error})") from error
        if len(data) != member.file_size:
            raise UnreadableError(f"{name} does not have the size stated in the zip")
        return data

    @staticmethod
    def _opened(file: IO[bytes]) -> ZipFile:
        """Check the size of the directory first, as ZipFile reads all of it into memory."""
        size = file.seek(0, 2)
        tail_at = max(0, size - _END_FORM.size - 0xFFFF)
        file.seek(tail_at)
        tail = file.read()
        at = tail.rfind(_END)
        if at < 0:
            raise UnreadableError("not a zip file, or truncated")
        _, _, _, _, count, directory, _, _ = _END_FORM.unpack_from(tail, at)
        end_at = tail_at + at
        if end_at >= _LOCATOR64_FORM.size:
            file.seek(end_at - _LOCATOR64_FORM.size)
            mark, _, end64_at, _ = _LOCATOR64_FORM.unpack(file.read(_LOCATOR64_FORM.size))
            if mark == _LOCATOR64:
                # zipfile looks here, whatever the locator says.
                file.seek(max(0, end_at - _LOCATOR64_FORM.size - _END64_FORM.size))
                end64 = _END64_FORM.unpack(file.read(_END64_FORM.size))
                if end64[0] != _END64:
                    raise UnreadableError(f"its directory is not where stated ({end64_at})")
                count, directory = end64[7], end64[8]
        if count > MAX_MEMBERS or directory > MAX_DIRECTORY_BYTES:
            raise UnreadableError(
                f"its directory is too large ({count:,} members, {directory:,} bytes)"
            )
        if end_at + _END_FORM.size != size:
            raise UnreadableError("it has data behind the end of the zip")
        file.seek(0)
        return ZipFile(file)

    @staticmethod
    def _checked(infos: list[ZipInfo], size: int) -> dict[str, ZipInfo]:
        members: dict[str, ZipInfo] = {}
        chunks: dict[str, set[str]] = {"entries": set(), "events": set()}
        for member in infos:
            name = member.filename
            if name in members:
                raise UnreadableError(f"it has {shown(name)} twice")
            if chunk := _CHUNK.fullmatch(name):
                chunks[chunk[1]].add(chunk[2])
            elif name not in (*_ONES, *_SOMETIMES) and not _CHECKPOINT.fullmatch(name):
                raise UnreadableError(f"it has an unexpected member: {shown(name)}")
            if member.flag_bits & _ENCRYPTED:
                raise UnreadableError(f"{name} is encrypted")
            if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise UnreadableError(f"{name} uses an unsupported compression")
            if member.file_size > MAX_MEMBER_BYTES:
                raise UnreadableError(f"{name} would be {member.file_size:,} bytes long")
            members[name] = member
        if infos and min(member.header_offset for member in infos) != 0:
            raise UnreadableError("it has data in front of the zip")
        if missing := [name for name in _ONES if name not in members]:
            raise UnreadableError(f"not an evidence bundle: {missing[0]} is missing")
        if (layout.SAMPLE in members) != (layout.POPULATION in members):
            raise UnreadableError("it has a sample without its population, or the other way round")
        if (layout.TIMELINE in members) != (layout.TIMELINE_PAGE in members):
            raise UnreadableError("it has only one of the two forms of a timeline")
        checkpoints = sum(name.startswith(layout.CHECKPOINTS) for name in members)
        if not 1 <= checkpoints <= _MAX_CHECKPOINTS:
            raise UnreadableError(f"it has {checkpoints} checkpoints, not 1 to {_MAX_CHECKPOINTS}")
        whole = {f"{chunk:06d}" for chunk in range(len(chunks["entries"]))}
        if not whole == chunks["entries"] == chunks["events"]:
            raise UnreadableError("its chunks of entries and events are not both numbered from 0")
        total = sum(member.file_size for member in infos)
        if total > FREE_BYTES + MAX_RATIO * size:
            raise UnreadableError(f"{size:,} bytes would inflate to {total:,}")
        return members
