"""The shape of stored values: which members occur where, their types, in how many calls. Pure.

Values are folded in one by one and never kept. Of values that the schema does not list, a shape
records only that they occurred, how often, and a few calls as samples. Undeclared names that
masking hides (`audit.show.masking`) may be payload too: they share one place, `*`.

A shape is bounded whatever executors send: `NODES_MAX` places, `MEMBERS_MAX` undeclared names of
one object, `DEPTH_MAX` levels. Anything beyond is counted at the place where it begins. So is the
work: after `VALUES_MAX` values of a call, only declared members and the first item of each array
are read.
"""

import json
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final
from uuid import UUID

from tooltrail.redact_text import MARK

from audit.events.outputs import Side
from audit.show.masking import is_name
from audit.work.drift.declared import REST, Declared, Place
from tools_registry.schema_diff.keywords import json_key

SIDES: Final[tuple[Side, ...]] = ("args", "output")

NODES_MAX: Final = 1_000
MEMBERS_MAX: Final = 100
DEPTH_MAX: Final = 24
VALUES_MAX: Final = 10_000
"""Values of one call: some 40 ms, if the schema lists values."""
SAMPLES_MAX: Final = 3
REDACTED: Final = "redacted"
"""The type of a redacted value: its real type is not known."""

type CallPlace = tuple[str, str]
"""A call's UTC day and id."""

_TYPES: Final = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(slots=True)
class Seen:
    """In how many calls something occurred, and a few of them as samples."""

    calls: int = 0
    samples: list[CallPlace] = field(default_factory=list)
    last: int = 0
    """The number of the last call that had it, so that each call counts once."""

    def note(self, number: int, call: CallPlace) -> None:
        if self.last != number:
            self.last = number
            self.calls += 1
            if len(self.samples) < SAMPLES_MAX:
                self.samples.append(call)


@dataclass(slots=True)
class Shape:
    """What occurred at one place."""

    seen: Seen = field(default_factory=Seen)
    times: int = 0
    """How many values occurred here; within arrays, one call may have many."""
    types: dict[str, Seen] = field(default_factory=dict)
    objects: int = 0
    """How many of these values were objects."""
    unlisted: Seen = field(default_factory=Seen)
    """Values of a declared type that the schema does not list."""
    members: dict[str, "Shape"] = field(default_factory=dict)
    items: "Shape | None" = None
    beyond: Seen = field(default_factory=Seen)
    """Values below this place that were beyond a limit and not recorded separately."""

    @property
    def is_incomplete(self) -> bool:
        """Whether anything was beyond a limit, here or below."""
        below = [*self.members.values(), *([self.items] if self.items else [])]
        return self.beyond.calls > 0 or any(each.is_incomplete for each in below)


class Fold:
    """Builds the shape of one side's values; `declared` is the registered schema."""

    def __init__(self, declared: Declared | None, root: Shape | None = None) -> None:
        self.root = root or Shape()
        self._declared = declared
        self._number = self.root.seen.calls
        self._nodes = _count(self.root)
        self._call: CallPlace = ("", "")
        self._left = 0

    def add(self, value: Any, day: date, invocation_id: UUID) -> None:
        """Fold in one call's value."""
        self._number += 1
        self._call = (day.isoformat(), str(invocation_id))
        self._left = VALUES_MAX
        place = None if self._declared is None else self._declared.root
        self._add(self.root, place, value, 0)

    def _add(self, shape: Shape, place: Place | None, value: Any, depth: int) -> None:
        number, call = self._number, self._call
        kind = _TYPES.get(type(value))
        if kind is None:
            kind = "integer" if value.is_integer() else "fraction"
        elif kind == "string" and value == MARK:
            kind = REDACTED
        shape.times += 1
        seen = shape.types.get(kind)
        if seen is None:
            seen = shape.types[kind] = Seen()
        if seen.last != number:
            seen.note(number, call)
            shape.seen.note(number, call)
        if kind == "object":
            shape.objects += 1
            self._add_members(shape, place, value, depth)
        elif kind == "array":
            self._add_items(shape, place, value, depth)
        elif (
            place is not None
            and place.values is not None
            and kind in place.types
            and json_key(value) not in place.values
        ):
            shape.unlisted.note(number, call)

    def _add_members(
        self, shape: Shape, place: Place | None, value: dict[str, Any], depth: int
    ) -> None:
        if depth >= DEPTH_MAX:
            shape.beyond.note(self._number, self._call)
            return
        for name, member in value.items():
            known_as, below = name, None
            if place is not None and self._declared is not None:
                known_as, below = self._declared.member(place, name)
            if below is None and not is_name(name):
                known_as = REST
            self._left -= 1
            if self._left < 0 and (below is None or known_as == REST):
                shape.beyond.note(self._number, self._call)
                continue
            member_shape = shape.members.get(known_as)
            if member_shape is None:
                is_separate = below is not None or len(shape.members) < MEMBERS_MAX
                if not is_separate or self._nodes >= NODES_MAX:
                    shape.beyond.note(self._number, self._call)
                    continue
                self._nodes += 1
                member_shape = shape.members[known_as] = Shape()
            self._add(member_shape, below, member, depth + 1)

    def _add_items(self, shape: Shape, place: Place | None, value: list[Any], depth: int) -> None:
        if not value:
            return
        if shape.items is None:
            if depth >= DEPTH_MAX or self._nodes >= NODES_MAX:
                shape.beyond.note(self._number, self._call)
                return
            self._nodes += 1
            shape.items = Shape()
        below = None
        if place is not None and self._declared is not None:
            below = self._declared.item(place)
        for number, item in enumerate(value):
            self._left -= 1
            if self._left < 0 and number > 0:
                shape.beyond.note(self._number, self._call)
                break
            self._add(shape.items, below, item, depth + 1)


def _count(shape: Shape) -> int:
    below = [*shape.members.values(), *([shape.items] if shape.items else [])]
    return 1 + sum(map(_count, below))


def dump(shape: Shape) -> list[Any]:
    """A shape as compact JSON; `load` reads it."""
    return [
        _dump_seen(shape.seen),
        shape.times,
        {kind: _dump_seen(seen) for kind, seen in shape.types.items()},
        shape.objects,
        _dump_seen(shape.unlisted),
        {name: dump(member) for name, member in shape.members.items()},
        None if shape.items is None else dump(shape.items),
        _dump_seen(shape.beyond),
    ]


def load(document: list[Any]) -> Shape:
    """The shape that `dump` wrote."""
    seen, times, types, objects, unlisted, members, items, beyond = document
    return Shape(
        seen=_load_seen(seen),
        times=times,
        types={kind: _load_seen(each) for kind, each in types.items()},
        objects=objects,
        unlisted=_load_seen(unlisted),
        members={name: load(member) for name, member in members.items()},
        items=None if items is None else load(items),
        beyond=_load_seen(beyond),
    )


@dataclass(slots=True)
class Observed:
    """One side's values: their shape, and the number of unread ones by reason."""

    shape: Shape = field(default_factory=Shape)
    skipped: dict[str, int] = field(default_factory=dict)


def dumps(sides: dict[Side, Observed]) -> str:
    """Both sides as ASCII text: names may hold characters that PostgreSQL cannot store."""
    document = {side: [dump(one.shape), one.skipped] for side, one in sides.items()}
    return json.dumps(document, separators=(",", ":"))


def loads(text: str) -> dict[Side, Observed]:
    """Read what `dumps` wrote; an empty text means nothing was observed."""
    document: dict[Side, Any] = json.loads(text) if text else {}
    return {
        side: Observed(load(document[side][0]), document[side][1])
        if side in document
        else Observed()
        for side in SIDES
    }


def _dump_seen(seen: Seen) -> list[Any]:
    return [seen.calls, seen.samples] if seen.calls else []


def _load_seen(document: list[Any]) -> Seen:
    if not document:
        return Seen()
    calls, samples = document
    return Seen(calls, [(day, pk) for day, pk in samples])
