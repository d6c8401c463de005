"""What a change of a schema does to the set of values it accepts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import Any, Final


class Absent:
    """There is no such keyword: no JSON value says that."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class Effect(IntFlag):
    """Of one change or of several together, which are joined by `|`."""

    NONE = 0
    WIDER = 1
    """Values may be accepted that were not, and no value is lost."""
    NARROWER = 2
    """Values may be refused that were not, and no value is gained."""
    OTHER = 3
    """Both."""
    UNDECIDED = 7
    """Perhaps both: nobody has found out."""

    def flipped(self) -> "Effect":
        """The same below a `not`."""
        swapped = (self & Effect.WIDER) << 1 | (self & Effect.NARROWER) >> 1
        return Effect(swapped | self & ~Effect.OTHER)


def joined(effects: Iterable[Effect]) -> Effect:
    """What several changes do together."""
    return reduce(or_, effects, Effect.NONE)


def effect_of(*, loses: bool, gains: bool) -> Effect:
    """Of a change that may refuse what was accepted, and accept what was not."""
    return (Effect.NARROWER if loses else Effect.NONE) | (Effect.WIDER if gains else Effect.NONE)


def by_presence(before: Any, after: Any) -> Effect:
    """Of a keyword that came or went; a change between two values is not decided."""
    if before is ABSENT:
        return Effect.NARROWER
    return Effect.WIDER if after is ABSENT else Effect.UNDECIDED


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference between two schemas, at one place of the values they are about."""

    path: str
    """`$.city`, `$.rows[*]`: where in the value."""
    keyword: str
    """Of JSON Schema; `property` for one that came or went."""
    before: Any
    """The keyword's value, ABSENT for none."""
    after: Any
    effect: Effect
    why: str = ""
    """What is not plain to see."""

    @property
    def is_note(self) -> bool:
        """Whether it is about a word for readers, such as a description."""
        return self.keyword in NOTES and self.effect is Effect.NONE


NOTES = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$comment", "$schema", "$id"}
)
"""Keywords that say nothing about which values are accepted."""
