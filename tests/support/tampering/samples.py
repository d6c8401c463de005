"""The file of a sample's bundle, altered by whoever has it between the server and the auditor."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.support.tampering.files import Edit, Members, of_file, without_entries
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Tampering

BUNDLE = Finder.BUNDLE
SAMPLE, POPULATION = "sample.json", "population.bin"
_RECORD = 40


def kinds() -> Iterator[Tampering]:
    """Kinds that change what a bundle says of a sample."""
    members: dict[str, dict[str, Any]] = {
        "nonce": {"nonce": "0" * 64},
        "checkpoint": {"checkpoint_size": 1},
        "root": {"checkpoint_root": "A" * 43 + "="},
    }
    for name, change in members.items():
        yield _of(f"the seed of a sample has another part: {name}", _document(change), BUNDLE)
    for name, value in (("query", "tool:x"), ("size", 1)):
        what = f"a sample was defined otherwise: {name}"
        yield _of(what, _definition({name: value}), BUNDLE)
    yield _of("a call was taken out of a sample's population", _without_record, BUNDLE)
    yield _of("a call in a sample's population was exchanged", _edit_record, BUNDLE)
    yield _of("a drawn call was taken out of a sample", _without_call, BUNDLE)
    yield _of("a drawn call of a sample was exchanged", _call({"index": 2**40}), BUNDLE)
    yield _of("a conclusion of a sample was changed", _call({"conclusion": "unjudged"}), BUNDLE)
    yield _of("a text of a sample was changed", _call({"note": "forged"}), BUNDLE)
    yield _of("a text of a sample was taken out", _call({"note": None}), BUNDLE)
    for verb in ("commit", "fix", "draw", "conclude"):
        what = f"entries about a sample were taken out: sample.{verb}"
        yield _of(what, without_entries(f"sample.{verb}"), BUNDLE)
    yield _of(
        "entries about a sample were taken out: sample.sign",
        without_entries("sample.sign"),
        why="it is a sample that nobody has signed, and the command says so",
    )


def _of(what: str, edit: Edit, *finders: Finder, why: str = "") -> Tampering:
    return of_file(what, edit, *finders, why=why, path=lambda record: record.sample)


def _document(change: dict[str, Any]) -> Edit:
    def edit(members: Members, _: random.Random) -> None:
        members[SAMPLE] = json.dumps(json.loads(members[SAMPLE]) | change).encode()

    return edit


def _definition(change: dict[str, Any]) -> Edit:
    def edit(members: Members, _: random.Random) -> None:
        document = json.loads(members[SAMPLE])
        document["definition"] |= change
        members[SAMPLE] = json.dumps(document).encode()

    return edit


def _call(change: dict[str, Any]) -> Edit:
    def edit(members: Members, rng: random.Random) -> None:
        document = json.loads(members[SAMPLE])
        rng.choice(document["calls"]).update(change)
        members[SAMPLE] = json.dumps(document).encode()

    return edit


def _without_call(members: Members, rng: random.Random) -> None:
    document = json.loads(members[SAMPLE])
    del document["calls"][rng.randrange(len(document["calls"]))]
    members[SAMPLE] = json.dumps(document).encode()


def _without_record(members: Members, rng: random.Random) -> None:
    data = members[POPULATION]
    at = rng.randrange(len(data) // _RECORD) * _RECORD
    members[POPULATION] = data[:at] + data[at + _RECORD :]


def _edit_record(members: Members, rng: random.Random) -> None:
    data = bytearray(members[POPULATION])
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    members[POPULATION] = bytes(data)
