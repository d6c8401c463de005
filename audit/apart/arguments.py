"""Which arguments set a selection of calls apart: shapes, and values that many calls have. Pure.

Of each call's arguments, the types at all paths are its shape; short scalars are values. Both
become columns for `audit.apart.rules`. Values are compared by digests, so that what is stored
between two steps of a long comparison holds no argument (docs/adr/0011).
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from audit.apart.rules import Column, Difference, set_apart

PATHS_MAX: Final = 60
"""The most paths that are compared, those that most calls have."""
PAIRED_MAX: Final = 20
"""The most paths whose values are also compared in pairs."""
MEMBERS_MAX: Final = 200
"""The most members of one call's arguments that are looked at."""
_DEPTH_MAX: Final = 5
_LENGTH_MAX: Final = 100
"""Characters of a text that counts as a value: longer ones are prose, not choices."""
_ABSENT: Final = "absent"

type Path = tuple[str, ...]


class Waiting(NamedTuple):
    """A call whose arguments are still to be read: side, trace, and where its start event is."""

    is_selected: bool
    trace: int
    day: str
    invocation_id: str
    batch_id: str
    position: int


class Read(NamedTuple):
    """A call whose arguments were read: side, trace, and by path its type and perhaps a digest."""

    is_selected: bool
    trace: int
    day: str
    invocation_id: str
    seen: dict[str, tuple[str, str]]


class Part(NamedTuple):
    """One half of what was found: a path, and a type, or '' for a value."""

    path: Path
    type: str


class FoundArgument(NamedTuple):
    """What is more frequent in the selection, and a call that has it."""

    parts: list[Part]
    also: list[list[Part]]
    selected: int
    rest: int
    sides: tuple[int, int]
    p: float
    day: str
    invocation_id: str
    """A selected call: its arguments say what the values are."""


@dataclass
class Observed:
    """How far a comparison is."""

    waiting: list[Waiting] = field(default_factory=list)
    read: list[Read] = field(default_factory=list)

    def dumps(self) -> str:
        """As text, without any argument."""
        return msgspec.json.encode((self.waiting, self.read)).decode()


def loads(text: str) -> Observed:
    """What `dumps` wrote."""
    waiting, read = msgspec.json.decode(text, type=tuple[list[Waiting], list[Read]])
    return Observed(waiting, read)


def seen_in(arguments: Any, salt: str) -> dict[str, tuple[str, str]]:
    """The type at each path of a call's arguments, and the digest of the value there; '': none."""
    seen = {}
    for path, value in _members((), arguments):
        seen[json.dumps(path)] = (_type_of(value), _digest(value, salt))
        if len(seen) >= MEMBERS_MAX:
            break
    return seen


def value_at(arguments: Any, path: Path) -> Any:
    """The value at a path. Raises LookupError if there is none."""
    for name in path:
        if not isinstance(arguments, dict):
            raise LookupError(name)
        arguments = arguments[name]
    return arguments


def find(read: Sequence[Read]) -> tuple[list[FoundArgument], int]:
    """What sets the selected calls apart, the strongest first, and how many values were tested."""
    counts = Counter(path for call in read for path in call.seen)
    paths = sorted(counts, key=lambda path: (-counts[path], path))[:PATHS_MAX]
    columns = []
    for number, path in enumerate(paths):
        at_path = [call.seen.get(path, (_ABSENT, "")) for call in read]
        types = [each_type for each_type, _ in at_path]
        digests = [digest or None for _, digest in at_path]
        columns.append(Column(f"type {path}", types))
        columns.append(Column(f"value {path}", digests, is_paired=number < PAIRED_MAX))
    columns = [column for column in columns if len(set(column.values)) > 1]
    is_selected = [call.is_selected for call in read]
    verdict = set_apart(columns, is_selected, [str(call.trace) for call in read])
    return [_difference(one, read) for one in verdict.differences], verdict.tested


def _difference(one: Difference, read: Sequence[Read]) -> FoundArgument:
    sample = next(call for call in read if call.is_selected and _has(call, one.values))
    return FoundArgument(
        parts=_parts(one.values),
        also=[_parts(values) for values in one.also],
        selected=one.selected,
        rest=one.rest,
        sides=one.sides,
        p=one.p,
        day=sample.day,
        invocation_id=sample.invocation_id,
    )


def _parts(values: Sequence[tuple[str, str]]) -> list[Part]:
    parts = []
    for name, value in values:
        kind, _, path = name.partition(" ")
        parts.append(Part(tuple(json.loads(path)), value if kind == "type" else ""))
    return parts


def _has(call: Read, values: Sequence[tuple[str, str]]) -> bool:
    for name, value in values:
        kind, _, path = name.partition(" ")
        if call.seen.get(path, (_ABSENT, ""))[kind == "value"] != value:
            return False
    return True


def _members(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Each member of nested objects with its path; lists are not looked into."""
    if not isinstance(value, dict) or len(path) == _DEPTH_MAX:
        return
    for name, member in value.items():
        yield (*path, name), member
        yield from _members((*path, name), member)


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list" if value else "empty list"
        case _:
            return "object"


def _digest(value: Any, salt: str) -> str:
    """The same for equal values of one comparison; '' for what is no choice."""
    if isinstance(value, str) and len(value) > _LENGTH_MAX:
        return ""
    if not isinstance(value, str | int | float | bool):
        return ""
    text = json.dumps(value)
    return blake2b(text.encode(), key=salt.encode(), digest_size=8).hexdigest()
