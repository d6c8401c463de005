"""The effect of a schema change on the set of accepted values."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import Any, Final


class Absent:
    """The type of ABSENT: the keyword is missing, which no JSON value can express."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class Effect(IntFlag):
    """The effect of one change, or of several joined by `|`."""

    NONE = 0
    WIDER = 1
    """More values may be accepted, and none is refused that was accepted."""
    NARROWER = 2
    """More values may be refused, and none is accepted that was refused."""
    OTHER = 3
    """Both."""
    UNDECIDED = 7
    """Unknown; perhaps both."""

    def flipped(self) -> "Effect":
        """The effect inside a `not`."""
        swapped = (self & Effect.WIDER) << 1 | (self & Effect.NARROWER) >> 1
        return Effect(swapped | self & ~Effect.OTHER)


def joined(effects: Iterable[Effect]) -> Effect:
    """The joint effect of several changes."""
    return reduce(or_, effects, Effect.NONE)


def effect_of(*, loses: bool, gains: bool) -> Effect:
    """The effect of a change that may refuse accepted values or accept refused ones."""
    return (Effect.NARROWER if loses else Effect.NONE) | (Effect.WIDER if gains else Effect.NONE)


def by_presence(before: Any, after: Any) -> Effect:
    """The effect of an added or removed keyword; a changed one is UNDECIDED."""
    if before is ABSENT:
        return Effect.NARROWER
    return Effect.WIDER if after is ABSENT else Effect.UNDECIDED


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference between two schemas, at one place of the value."""

    path: str
    """Place in the value, such as `$.city` or `$.rows[*]`."""
    keyword: str
    """The keyword of JSON Schema; `property` for an added or removed property."""
    before: Any
    """The keyword's old value; ABSENT if there was none."""
    after: Any
    effect: Effect
    why: str = ""
    """An explanation, where the effect is not obvious."""

    @property
    def is_note(self) -> bool:
        """Whether it concerns a text for readers, such as a description."""
        return self.keyword in NOTES and self.effect is Effect.NONE


NOTES = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$comment", "$schema", "$id"}
)
"""Keywords that do not affect which values are accepted."""
