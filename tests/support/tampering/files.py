"""The file of a bundle, altered by whoever has it between the server and the auditor."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from tooltrail.ledger import Checkpoint, SigningKey
from tooltrail.ledger.lines import from_base64, to_base64
from tooltrail.tools.digest import tool_digest

from tests.support.tampering.finders import Finder, verified
from tests.support.tampering.kinds import Tampering
from tests.support.tampering.record import Power, Record

BUNDLE, KEPT = Finder.BUNDLE, Finder.KEPT
ENTRIES, EVENTS = "entries/000000.ndjson", "events/000000.ndjson"
REGISTRY, STATEMENTS, ERASURES = "registry.ndjson", "statements.ndjson", "erasures.ndjson"
_WORDS = "the words of whoever made the file; the command says so"

type Members = dict[str, bytes]
type Edit = Callable[[Members, random.Random], None]


def kinds() -> Iterator[Tampering]:
    """Kinds that change a file."""
    lines = {
        "event": EVENTS,
        "entry": ENTRIES,
        "declaration of an erasure": ERASURES,
        "version of a tool": REGISTRY,
    }
    for what, member in lines.items():
        yield _of(f"a line of a bundle was taken out: {what}", _without_line(member), BUNDLE)
    yield _of(
        "a line of a bundle was taken out: statement",
        _without_line(STATEMENTS),
        why="if its entry is in the range, too, nothing is lost",
    )
    yield _of("an event in a bundle was changed", _edit_event, BUNDLE)
    yield _of("an event in a bundle was changed, with its entry", _edit_length, BUNDLE)
    yield _of("two events in a bundle were swapped", _swap_events, BUNDLE)
    yield _of(
        "an entry in a bundle has another time", _member_of_line(ENTRIES, "received_us", 1), BUNDLE
    )
    yield _of("a declaration in a bundle covers more", _widen, BUNDLE)
    yield _of("a contract in a bundle was replaced, with its digest", _forge_version, BUNDLE)
    yield _of("a version in a bundle was invented", _invent_version, BUNDLE)
    for name, value in (
        ("number", 99),
        ("published_at", "2020-01-01T00:00:00Z"),
        ("published_by", "ada"),
    ):
        yield _of(
            f"a version in a bundle has another {name}",
            _member_of_line(REGISTRY, name, value),
            BUNDLE,
        )
    yield _of("the report in a bundle was changed", _edit_report, BUNDLE)
    yield _of("a checkpoint in a bundle was changed", _edit_checkpoint, BUNDLE)
    yield _of("the newest checkpoint in a bundle was signed with another key", _sign, BUNDLE)
    yield _of("a hash of a bundle's tree was changed", _edit_tree, BUNDLE)
    yield _of("a bundle's range was narrowed to hide entries", _cut, BUNDLE)
    yield _of("a bundle names another ledger", _manifest("origin", "other.example/log/1"), BUNDLE)
    for name in ("tenant", "made_by", "made_at"):
        yield _of(f"a bundle says something else: {name}", _manifest(name, "forged"), why=_WORDS)
    yield _of("a bundle has another README.txt", _replace("README.txt", b"Genuine."), why=_WORDS)
    yield _of("a bundle has other keys", _other_keys, why="--key is used instead")
    yield _of("a bundle has one more member", _replace("more.txt", b"x"), BUNDLE)
    yield Tampering("data were appended to a bundle", "", Power.FILE, frozenset({BUNDLE}), _append)
    yield Tampering("an older bundle was shown", "", Power.FILE, frozenset({KEPT}), _older)


def _of(what: str, edit: Edit, *finders: Finder, why: str = "") -> Tampering:
    return of_file(what, edit, *finders, why=why, path=lambda record: record.bundle)


def of_file(
    what: str, edit: Edit, *finders: Finder, why: str, path: Callable[[Record], Path]
) -> Tampering:
    """A kind that edits the members of one of the auditor's files."""

    def act(record: Record, rng: random.Random) -> set[Finder]:
        altered = record.bundle.with_name("altered.zip")
        with ZipFile(path(record)) as file:
            members = {name: file.read(name) for name in file.namelist()}
        before = dict(members)
        edit(members, rng)
        assert members != before, "nothing was altered"
        with ZipFile(altered, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)
        return verified(record, altered, record.explain)

    what, _, of = what.partition(": ")
    return Tampering(what, of, Power.FILE, frozenset(finders), act, why)


def without_entries(verb: str) -> Edit:
    """An edit that takes the entries of actions with a verb out of the statements."""

    def edit(members: Members, _: random.Random) -> None:
        lines = members[STATEMENTS].splitlines(keepends=True)
        named = f'"verb":"{verb}"'.encode()
        members[STATEMENTS] = b"".join(
            line for line in lines if named not in from_base64(json.loads(line)["raw"], "a line")
        )

    return edit


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _without_line(member: str) -> Edit:
    def edit(members: Members, rng: random.Random) -> None:
        lines = _lines(members[member])
        del lines[rng.randrange(len(lines))]
        members[member] = b"".join(lines)

    return edit


def _edit_event(members: Members, rng: random.Random) -> None:
    data = bytearray(members[EVENTS])
    at = rng.choice([at for at, byte in enumerate(data) if byte != 10])
    data[at] = ord("x") if data[at] != ord("x") else ord("y")
    members[EVENTS] = bytes(data)


def _edit_length(members: Members, rng: random.Random) -> None:
    events, entries = _lines(members[EVENTS]), _lines(members[ENTRIES])
    with_kind = [at for at, line in enumerate(entries) if "kind" in json.loads(line)]
    number = rng.randrange(len(events))
    events[number] = events[number].replace(b"}", b" }", 1)
    entry = json.loads(entries[with_kind[number]])
    entry["length"] += 1
    entries[with_kind[number]] = json.dumps(entry).encode() + b"\n"
    members[EVENTS], members[ENTRIES] = b"".join(events), b"".join(entries)


def _swap_events(members: Members, rng: random.Random) -> None:
    lines = _lines(members[EVENTS])
    one, other = rng.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    members[EVENTS] = b"".join(lines)


def _member_of_line(member: str, name: str, value: Any) -> Edit:
    def edit(members: Members, rng: random.Random) -> None:
        lines = _lines(members[member])
        at = rng.choice([at for at, line in enumerate(lines) if name in json.loads(line)])
        document = json.loads(lines[at])
        document[name] = value if isinstance(value, str) else document[name] + value
        lines[at] = json.dumps(document).encode() + b"\n"
        members[member] = b"".join(lines)

    return edit


def _widen(members: Members, rng: random.Random) -> None:
    lines = _lines(members[ERASURES])
    at = rng.randrange(len(lines))
    document = json.loads(lines[at])
    document["raw"] = to_base64(b'{"ranges":[[0,99]],"reason":"GDPR","actor":"ada"}')
    lines[at] = json.dumps(document).encode() + b"\n"
    members[ERASURES] = b"".join(lines)


def _forge_version(members: Members, rng: random.Random) -> None:
    lines = _lines(members[REGISTRY])
    at = rng.randrange(len(lines))
    version = json.loads(lines[at]) | {"description": f"forged {rng.random()}"}
    lines[at] = _digested(version)
    members[REGISTRY] = b"".join(lines)


def _invent_version(members: Members, rng: random.Random) -> None:
    lines = _lines(members[REGISTRY])
    version = json.loads(rng.choice(lines)) | {"description": "forged", "number": 99}
    members[REGISTRY] = b"".join([*lines, _digested(version)])


def _digested(version: dict[str, Any]) -> bytes:
    names = ("description", "input_schema", "output_schema", "trusted", "ephemeral", "on_collision")
    digest = tool_digest(name=version["tool_name"], **{name: version[name] for name in names})
    return json.dumps(version | {"digest": digest}).encode() + b"\n"


def _edit_report(members: Members, rng: random.Random) -> None:
    document = json.loads(members["report.json"])
    name = rng.choice([name for name in document if name != "tenant"])
    document[name] = f"forged {rng.random()}"
    members["report.json"] = json.dumps(document).encode()


def _checkpoint(members: Members, rng: random.Random | None = None) -> str:
    names = sorted(name for name in members if name.startswith("checkpoints/"))
    return names[-1] if rng is None else rng.choice(names)


def _edit_checkpoint(members: Members, rng: random.Random) -> None:
    name = _checkpoint(members, rng)
    lines = members[name].split(b"\n")
    lines[2] = to_base64(rng.randbytes(32)).encode()
    members[name] = b"\n".join(lines)


def _sign(members: Members, rng: random.Random) -> None:
    name = _checkpoint(members)
    origin, size, *_ = members[name].decode().split("\n")
    forged = SigningKey(origin, rng.randbytes(32))
    members[name] = Checkpoint(origin, int(size), rng.randbytes(32)).sign([forged])
    members["keys.txt"] = f"{forged.verifier}\n".encode()


def _other_keys(members: Members, rng: random.Random) -> None:
    origin = json.loads(members["bundle.json"])["origin"]
    members["keys.txt"] = f"{SigningKey(origin, rng.randbytes(32)).verifier}\n".encode()


def _edit_tree(members: Members, rng: random.Random) -> None:
    tree = json.loads(members["tree.json"])
    tree["behind"] = [*tree["behind"], to_base64(rng.randbytes(32))]
    members["tree.json"] = json.dumps(tree).encode()


def _manifest(name: str, value: Any) -> Edit:
    def edit(members: Members, _: random.Random) -> None:
        document = json.loads(members["bundle.json"]) | {name: value}
        members["bundle.json"] = json.dumps(document).encode()

    return edit


def _cut(members: Members, rng: random.Random) -> None:
    """Take the last entries out, and say that the range ends before."""
    entries, events = _lines(members[ENTRIES]), _lines(members[EVENTS])
    count = rng.randint(1, 5)
    members[ENTRIES], members[EVENTS] = b"".join(entries[:-count]), b"".join(events[:-count])
    end = json.loads(members["bundle.json"])["end_index"] - count
    _manifest("end_index", end)(members, rng)


def _replace(name: str, data: bytes) -> Edit:
    def edit(members: Members, _: random.Random) -> None:
        members[name] = data

    return edit


def _append(record: Record, rng: random.Random) -> set[Finder]:
    path = record.bundle.with_name("altered.zip")
    path.write_bytes(record.bundle.read_bytes() + rng.randbytes(10))
    return verified(record, path, record.explain)


def _older(record: Record, _: random.Random) -> set[Finder]:
    return verified(record, record.bundle.with_name("older.zip"), record.explain)
