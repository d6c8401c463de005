"""Untrusted zip files: each invalid one is rejected with the reason."""

import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tooltrail.evidence import Archive, UnreadableError, verify

from sdk.tests.support.bundles import Bundle, Log

LOG = Log.of(80)
HONEST = Bundle.of(LOG, 10, 70)


@pytest.fixture
def honest(tmp_path: Path) -> bytes:
    """The bytes of a bundle."""
    return HONEST.write(tmp_path / "honest.zip").read_bytes()


def packed(members: list[tuple[str, bytes]]) -> bytes:
    """A zip of these."""
    data = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return data.getvalue()


def members_of(data: bytes) -> list[tuple[str, bytes]]:
    """What is in a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def changed(name: str, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """A zip with another content of one member."""
    return lambda data: packed(
        [(each, change(content) if each == name else content) for each, content in members_of(data)]
    )


def with_member(name: str, content: bytes = b"x") -> Callable[[bytes], bytes]:
    """A zip with one more."""
    return lambda data: packed([*members_of(data), (name, content)])


def without(name: str) -> Callable[[bytes], bytes]:
    """A zip with one less."""
    return lambda data: packed([each for each in members_of(data) if each[0] != name])


def in_directory(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    """Other bytes in the directory's record of the first member."""

    def change(data: bytes) -> bytes:
        at = data.index(b"PK\x01\x02") + offset
        return data[:at] + value + data[at + len(value) :]

    return change


BIG = b"1" + b"0" * 30
HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda _: b"", "not a zip"),
    "text": (lambda _: b"hello" * 100, "not a zip"),
    "cut off": (lambda data: data[:-30], "not a zip"),
    "cut in the middle": (lambda data: data[: len(data) // 2], "not a zip"),
    "a path out of the folder": (with_member("../../etc/passwd"), "unexpected member"),
    "an absolute path": (with_member("/etc/passwd"), "unexpected member"),
    "a name with control characters": (with_member("a\x1b[31m"), r"'a\\x1b\[31m'"),
    "a member twice": (with_member("tree.json"), "'tree.json' twice"),
    "a chunk twice": (with_member("entries/000000.ndjson"), "twice"),
    "a chunk under a second name": (with_member("entries/0000000.ndjson"), "not both numbered"),
    "a chunk without events": (with_member("entries/000001.ndjson"), "not both numbered"),
    "a chunk too many": (with_member("entries/000007.ndjson"), "not both numbered"),
    "without a tree": (without("tree.json"), "tree.json is missing"),
    "without a checkpoint": (without("checkpoints/000000000080.txt"), "it has 0 checkpoints"),
    "not a bundle": (lambda _: packed([("a.txt", b"a")]), "unexpected member"),
    "a bomb": (with_member("report.json", bytes(65 << 20)), "would be 68,157,440 bytes"),
    "an encrypted member": (in_directory(8, b"\x01\x00"), "encrypted"),
    "packed in a strange way": (in_directory(10, b"\x63\x00"), "unsupported compression"),
    "a size that is a lie": (in_directory(24, b"\x01\x00\x00\x00"), "damaged|not have the size"),
    "no JSON": (changed("bundle.json", lambda _: b"{"), "bundle.json cannot be read"),
    "JSON without end": (changed("bundle.json", lambda _: b"[" * 100_000), "cannot be read"),
    "a number too many": (
        changed("bundle.json", lambda old: old.replace(b'"end_index":70', b'"end_index":' + BIG)),
        "bundle.json cannot be read",
    ),
    "no UTF-8": (
        changed("bundle.json", lambda old: old.replace(b'"acme"', b'"\xff"')),
        "bundle.json cannot be read",
    ),
    "entries that are no UTF-8": (
        changed(
            "entries/000000.ndjson", lambda old: old.replace(b'"event_id":"0', b'"event_id":"\xff')
        ),
        "entries/000000.ndjson cannot be read",
    ),
    "a range turned round": (
        changed("bundle.json", lambda old: old.replace(b'"end_index":70', b'"end_index":7')),
        "ends before it begins",
    ),
    "no instant": (
        changed("bundle.json", lambda old: old.replace(b'"from":"2026', b'"from":"x026')),
        "not a valid time",
    ),
    "an instant without a zone": (
        changed("bundle.json", lambda old: old.replace(b"+00:00", b"")),
        "not a valid time",
    ),
    "a length too many": (
        changed("entries/000000.ndjson", lambda old: old.replace(b'"length":', b'"length":9')),
        "has no event for entry 10",
    ),
    "events without an entry": (
        changed("events/000000.ndjson", lambda old: old + b"more\n"),
        "events without an entry",
    ),
    "no keys": (changed("keys.txt", lambda _: b""), "public keys"),
    "keys that are none": (changed("keys.txt", lambda _: b"\xff"), "keys cannot be read"),
    "erasures that are none": (changed("erasures.ndjson", lambda _: b"1\n"), "erasures.ndjson"),
    "versions that are none": (changed("registry.ndjson", lambda _: b"{}\n"), "registry.ndjson"),
    "a schema without end": (
        changed(
            "registry.ndjson",
            lambda old: old.replace(b'{"type":"object"}', b'{"a":' * 700 + b"1" + b"}" * 700),
        ),
        "registry.ndjson|'search' version 1 was edited",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_zip_is_rejected_with_its_reason(name: str, honest: bytes, tmp_path: Path) -> None:
    make, words = HOSTILE[name]
    path = tmp_path / "hostile.zip"
    path.write_bytes(make(honest))
    with pytest.raises((UnreadableError, AssertionError), match=words), Archive(path) as archive:
        verdict = verify(archive)
        raise AssertionError("\n".join(verdict.lines()))


def test_zip_with_an_oversized_directory_is_rejected(tmp_path: Path, honest: bytes) -> None:
    path, at = tmp_path / "hostile.zip", honest.rindex(b"PK\x05\x06")
    path.write_bytes(honest[: at + 12] + b"\xff\xff\xff\x7f" + honest[at + 16 :])
    with pytest.raises(UnreadableError, match="directory is too large"):
        Archive(path)


def test_zip_bomb_of_many_members_is_rejected(tmp_path: Path, honest: bytes) -> None:
    path = tmp_path / "hostile.zip"
    zeros = [(f"checkpoints/{1000 + n:012d}.txt", bytes(1)) for n in range(30)]
    data = packed([*members_of(honest), *zeros])
    for name, _ in zeros:  # each would be 60 MB long
        at = data.rindex(name.encode()) - 46 + 24
        data = data[:at] + (60 << 20).to_bytes(4, "little") + data[at + 4 :]
    path.write_bytes(data)
    with pytest.raises(UnreadableError, match="bytes would inflate to 1,8"):
        Archive(path)


@pytest.mark.slow
def test_no_flipped_bit_passes_as_genuine(tmp_path: Path, honest: bytes) -> None:
    rng, path = random.Random(5), tmp_path / "damaged.zip"
    refused = failed = 0
    for _ in range(400):
        at = rng.randrange(len(honest))
        path.write_bytes(
            honest[:at] + bytes([honest[at] ^ 1 << rng.randrange(8)]) + honest[at + 1 :]
        )
        try:
            with Archive(path) as archive:
                document = verify(archive).document()
        except UnreadableError:
            refused += 1
            continue
        failed += not document["genuine"]
        if document["genuine"]:  # times, attributes and comments of the zip are nobody's claim
            assert members_of(path.read_bytes()) == members_of(honest)
    assert refused > 300
    assert json.dumps(document)
