"""Writes an evidence bundle as a stream: a zip of which at most one chunk is in memory.

Pure. The caller passes the events in the order of the ledger and sends the bytes it gets back.
The last members of a bundle may be from a later moment than its events.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec

from tooltrail.evidence.layout import (
    CHUNK_BYTES,
    CHUNK_EVENTS,
    ERASURES,
    KEYS,
    MANIFEST,
    POPULATION,
    README,
    REGISTRY,
    REPORT,
    SAMPLE,
    STATEMENTS,
    TIMELINE,
    TIMELINE_PAGE,
    TREE,
    EntryLine,
    Manifest,
    ProvedLine,
    RegisteredVersion,
    Tree,
    checkpoint_member,
    entries_member,
    events_member,
)

LEVEL = zlib.Z_BEST_SPEED
_OF_OLD = (1980, 1, 1, 0, 0, 0)  # a zip's earliest date: equal bundles have equal bytes
_FILE = 0o100644 << 16


class BundleWriter:
    """Writes one bundle. Every method returns the bytes that are ready to be sent."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = ZipFile(self._sink, "w", ZIP_DEFLATED, compresslevel=LEVEL)
        self._encoder = msgspec.json.Encoder()
        self._chunk = 0
        self._lines: list[EntryLine] = []
        self._raws: list[bytes] = []
        self._raw_bytes = 0

    def begin(self, manifest: Manifest, readme: str) -> bytes:
        """Write the first members."""
        self._add(README, readme.encode())
        self._add(MANIFEST, self._encoder.encode(manifest) + b"\n")
        return self._sink.taken()

    def entries(self, entries: Iterable[tuple[EntryLine, bytes]]) -> Iterator[bytes]:
        """Write entries with their events' bytes, in ledger order; b"" for an erased event."""
        for line, raw in entries:
            is_full = len(self._lines) >= CHUNK_EVENTS or self._raw_bytes + len(raw) > CHUNK_BYTES
            if is_full and self._lines:
                self._write_chunk()
                yield self._sink.taken()
            self._lines.append(line)
            if line.kind is not None:
                self._raws.append(raw)
                self._raw_bytes += len(raw) + 1

    def end(
        self,
        *,
        versions: Iterable[RegisteredVersion],
        report: bytes | None,
        sample: tuple[bytes, bytes] | None = None,
        timeline: tuple[bytes, bytes] | None = None,
        erasures: Iterable[ProvedLine],
        statements: Iterable[ProvedLine],
        checkpoints: Mapping[int, bytes],
        tree: Tree,
        keys: Iterable[str],
    ) -> bytes:
        """Write the last members and the end of the zip.

        `sample` are the two members of a sample: its file and its population; `timeline` those of
        an incident: the document and the page.
        """
        if self._lines:
            self._write_chunk()
        self._add(REGISTRY, self._encoder.encode_lines(versions))
        if report is not None:
            self._add(REPORT, report)
        if sample is not None:
            self._add(SAMPLE, sample[0])
            self._add(POPULATION, sample[1])
        if timeline is not None:
            self._add(TIMELINE, timeline[0])
            self._add(TIMELINE_PAGE, timeline[1])
        self._add(ERASURES, self._encoder.encode_lines(erasures))
        self._add(STATEMENTS, self._encoder.encode_lines(statements))
        for size, note in sorted(checkpoints.items()):
            self._add(checkpoint_member(size), note)
        self._add(TREE, self._encoder.encode(tree) + b"\n")
        self._add(KEYS, "".join(f"{key}\n" for key in keys).encode())
        self._zip.close()
        return self._sink.taken()

    def _write_chunk(self) -> None:
        self._add(entries_member(self._chunk), self._encoder.encode_lines(self._lines))
        self._add(events_member(self._chunk), b"".join([raw + b"\n" for raw in self._raws]))
        self._chunk += 1
        self._lines, self._raws, self._raw_bytes = [], [], 0

    def _add(self, name: str, data: bytes) -> None:
        member = ZipInfo(name, _OF_OLD)
        member.external_attr = _FILE
        self._zip.writestr(member, data, ZIP_DEFLATED, LEVEL)


class _Sink:
    """A file without seek, whose bytes are taken out as they are written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: no bytes are held back."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        data, self._parts = b"".join(self._parts), []
        return data
