"""Lists where observed values differ from the declared schema. Pure.

An undeclared field is reported once, at its top. A declared field counts as never seen only if an
object was seen that could have had it. Redacted values are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from audit.work.drift.declared import (
    REST,
    Declared,
    Place,
    type_names,
)
from audit.work.drift.shape import (
    REDACTED,
    CallPlace,
    Seen,
    Shape,
)

FINDINGS_MAX: Final = 300
"""The most findings of one side."""

Kind = Literal["undeclared", "unseen", "type", "value"]
_ORDER: Final[dict[Kind, int]] = {"type": 0, "value": 1, "undeclared": 2, "unseen": 3}

type Steps = tuple[str | None, ...]
"""Names from the top down; None is any item of an array, `*` any member of a map."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference: in `calls` calls, of the `of` calls in which it was possible."""

    kind: Kind
    steps: Steps
    calls: int
    of: int
    declared: str = ""
    """The declared types; for a field that was never seen, whether it is required."""
    seen: str = ""
    """The observed types, most frequent first."""
    is_refused: bool = False
    """Whether the schema rejects undeclared fields here."""
    samples: tuple[CallPlace, ...] = ()

    @property
    def path(self) -> str:
        """The path as in violations, with `[*]` for items and `*` for the members of a map."""
        return path_of(self.steps)

    @property
    def share(self) -> float:
        """The share of the calls in which it was possible, from 0 to 1."""
        return self.calls / self.of if self.of else 0.0


def path_of(steps: Steps) -> str:
    """Steps as a path."""
    return "$" + "".join("[*]" if step is None else f".{step}" for step in steps)


def compare(shape: Shape, declared: Declared) -> list[Finding]:
    """The differences: wrong types first, then other values; each kind by number of calls."""
    findings = list(_compare(shape, declared, declared.root, ()))
    findings.sort(key=lambda one: (_ORDER[one.kind], -one.calls, one.path))
    return findings[:FINDINGS_MAX]


def _compare(shape: Shape, declared: Declared, place: Place, steps: Steps) -> Iterator[Finding]:
    calls = shape.seen.calls
    names = ", ".join(type_names(place.types)) or "nothing"
    for kind, seen in shape.types.items():
        if kind != REDACTED and kind not in place.types:
            yield Finding(
                kind="type",
                steps=steps,
                calls=seen.calls,
                of=calls,
                declared=names,
                seen="number" if kind == "fraction" else kind,
                samples=tuple(seen.samples),
            )
    if shape.unlisted.calls:
        unlisted = shape.unlisted
        yield Finding("value", steps, unlisted.calls, calls, samples=tuple(unlisted.samples))
    if shape.objects:
        yield from _compare_members(shape, declared, place, steps)
    below = declared.item(place)
    if shape.items is not None and below is not None:
        yield from _compare(shape.items, declared, below, (*steps, None))


def _compare_members(
    shape: Shape, declared: Declared, place: Place, steps: Steps
) -> Iterator[Finding]:
    objects = shape.types["object"].calls
    for name, member in shape.members.items():
        below = declared.place(place.rest) if name == REST and place.rest else None
        if below is None:
            _, below = declared.member(place, name)
        if below is not None:
            yield from _compare(member, declared, below, (*steps, name))
            continue
        yield Finding(
            "undeclared",
            (*steps, name),
            member.seen.calls,
            objects,
            seen=seen_types(member),
            is_refused=place.is_closed,
            samples=tuple(member.seen.samples),
        )
    for name in place.members:
        if name not in shape.members:
            required = "required" if name in place.required else ""
            yield Finding("unseen", (*steps, name), 0, objects, declared=required)


def seen_types(shape: Shape) -> str:
    """The types at a place, the most frequent first."""

    def most(item: tuple[str, Seen]) -> tuple[int, str]:
        return (-item[1].calls, item[0])

    names = (kind for kind, _ in sorted(shape.types.items(), key=most))
    return ", ".join(dict.fromkeys("number" if kind == "fraction" else kind for kind in names))
