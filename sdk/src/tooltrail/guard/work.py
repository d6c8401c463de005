"""Limits the work of judging a value, including the part that cannot be stopped.

Work is counted in steps of half a microsecond, or one on a slow machine: one for a schema's visit
to a value, and more for a keyword that reads more than one element. Steps are counted, not timed,
so that the same value gets the same answer everywhere. The only exception are patterns. They run in
time linear in the text, but with a factor from 1 to 10,000 that neither pattern nor text shows. So
a match whose worst case is above `_SURE` is charged by the thread's own processor time, and a match
that could take `_MATCH_MAX` is not started.

jsonschema-rs cannot be stopped and holds Python's lock while it runs. `Weights` is its maximum
cost per element and per character of a value, so that it runs only where its cost is bounded.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from tooltrail.guard.jsvalues import kind_of
from tooltrail.guard.members import size_of
from tooltrail.guard.nodes import IN_PLACE, Graph, Node
from tooltrail.guard.regex import matcher

STEP_NS: Final = 500
EXPLAINED_STEPS: Final = 50_000
"""For one value: 50 ms on a slow machine. The violations found by then are reported, no more."""
DECIDED_STEPS: Final = 200_000
"""For one value without violations so far: 0.2 s on a slow machine. For large values, see
`STEPS_PER_ELEMENT`."""
STEPS_PER_ELEMENT: Final = 50
BYTES_READ_PER_STEP: Final = 25
"""Of JSON text that is read before its value is judged."""
NATIVE_STEPS: Final = 200_000
"""The maximum cost of jsonschema-rs: 0.1 s. Most values take a thousandth of that."""
NATIVE_STEPS_AT_LAST: Final = 4_000_000
"""The same if a guard has no other way to decide whether a value is valid: 2 s."""
LIGHT: Final = 64
"""A schema of at most this weight takes little more time than reading the value did."""

_POSITION_NS: Final = 30  # per position of a pattern and character, at worst
_SURE: Final = 512  # positions x characters: 15 µs
_MATCH_MAX: Final = 50_000_000 // _POSITION_NS  # positions x characters: 50 ms
_SIMPLE: Final = 16  # sub-schemas for an element: most of them check only its type
_UNITS_OF_SIMPLE: Final = 8  # of these take one step
_UNITS: Final = 2  # take one step if they compare values
_DIVIDED: Final = 320  # for `multipleOf`: 80 µs by a fraction, for 1e300
_HASHED: Final = 8  # for each element of an array whose elements must be unique
_WALKED: Final = 1  # steps for counting an element here and searching it for wide texts
_FEW: Final = 8  # with so few positions no automaton is large

_NUMBERS: Final = frozenset({int, float, bool, type(None)})

_TOKEN: Final = re.compile(
    r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?(?:[:=!]|<[=!]?)|[()|^$]|\{(\d+)(,?)(\d*)\}\??|[*+?]\??|.",
    re.DOTALL,
)


class Spender(Protocol):
    """Pays for steps, and stops when none are left."""

    def spend(self, steps: int) -> None:
        """Take steps. Raises if none are left."""


class Pattern:
    """A pattern whose matches cost steps."""

    def __init__(self, pattern: str) -> None:
        self._matches = matcher(pattern)
        self._width, self._reach = _extent(pattern)

    def matches(self, text: str, by: Spender) -> bool:
        """Whether the pattern matches anywhere in the text. The steps are taken from `by`."""
        length = len(text) if self._reach is None else min(len(text), self._reach)
        worst = length * self._width
        if worst <= _SURE or self._width <= _FEW:
            by.spend(1 + (len(text) >> 6))
            return self._matches(text)
        if worst > _MATCH_MAX:
            by.spend(worst * _POSITION_NS // STEP_NS)  # more than any limit: ends the walk
        began = time.thread_time_ns()
        is_match = self._matches(text)
        by.spend(1 + (time.thread_time_ns() - began) // STEP_NS)
        return is_match


@lru_cache(maxsize=1024)
def _extent(pattern: str) -> tuple[int, int | None]:
    """How many positions of a pattern a match can be in at once, and how far it reads into a text.

    Characters and classes are counted, repetitions are written out. Up to the first repetition
    of variable length, an anchored pattern without alternatives is in one position only.
    """
    is_anchored, is_endless, is_branching = pattern.startswith("^"), False, False
    totals, last, fixed = [0], [0], None
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text[0] == "(":
            totals.append(0)
            last.append(0)
        elif text == ")":
            group = totals.pop()
            last.pop()
            totals[-1] += group
            last[-1] = group
        elif text[0] in "*+?" or token[1] is not None:
            is_endless = is_endless or text[0] in "*+" or bool(token[2] and not token[3])
            if token[1] is not None:
                totals[-1] += last[-1] * (max(1, int(token[3] or token[1])) - 1)
            if fixed is None and (text[0] in "*+?" or token[2]):
                fixed = totals[0] if len(totals) > 1 or last[-1] == 1 else totals[0] - last[-1]
        elif text == "|":
            is_branching = True
        elif text[0] not in "^$":
            totals[-1] += 1
            last[-1] = 1
    positions = totals[0]
    if not is_anchored or is_branching:
        return max(1, positions), None
    width = positions - (positions if fixed is None else fixed) + 2
    return width, None if is_endless else positions + 1


class Weights(NamedTuple):
    """The maximum work of jsonschema-rs for one element, and for one character, of a value."""

    element: int
    character: int

    def cost(self, value: Any, limit: int, light: int = 0) -> int:
        """The steps for a value; a number above `limit` if it takes more than that.

        0 for any value if an element weighs at most `light`, and no pattern is large.
        """
        if self.element <= light and self.character <= _FEW:
            return 0
        of_element, cost, waiting = self._of_element, 0.0, [value]
        while waiting and cost <= limit:
            each = waiting.pop()
            cost += of_element
            if type(each) in _NUMBERS:  # most of them; a third of the time of `kind_of`
                continue
            kind = kind_of(each)
            if kind == "string":
                cost += self._of_characters(len(each))
            elif kind == "object":
                if self.character:
                    cost += sum(self._of_characters(len(str(name))) for name in each)
                waiting += each.values()
            elif kind == "array":
                waiting += each
        return math.ceil(cost)

    def cost_at_most(self, length: int) -> int:
        """The steps for any value whose JSON text has so many bytes: no less than its `cost`.

        Counting the elements of a value takes three times as long as jsonschema-rs does.
        """
        # An element takes two bytes or more: "[1,1,1]" are four.
        return math.ceil((length // 2 + 1) * self._of_element + self._of_characters(length))

    @property
    def _of_element(self) -> float:
        units = _UNITS_OF_SIMPLE if self.element <= _SIMPLE else _UNITS
        return self.element / units + _WALKED

    def _of_characters(self, number: int) -> float:
        return number * self.character * _POSITION_NS / STEP_NS


def weights_of(graph: Graph) -> Weights:
    """The weights of a schema. In a recursive schema, the whole cycle counts together."""
    return Weights(_heaviest(graph, _of_elements), _heaviest(graph, _of_characters))


class _Weight(NamedTuple):
    here: int
    """For the element that a node applies to."""
    below: int
    """For any one element below it."""

    @property
    def most(self) -> int:
        return max(self)


_NOTHING: Final = _Weight(0, 0)
_WEIGHT_MAX: Final = 1 << 40


class _Own(Protocol):
    def __call__(self, node: Node) -> _Weight:
        """The weight of a node's own keywords."""


def _heaviest(graph: Graph, own: _Own) -> int:
    """From the leaves up: a node weighs its own work plus that of its sub-schemas."""
    known: dict[int, _Weight] = {}
    for node in graph.leaves_first():
        known[id(node)] = _with_children(node, own(node), known)
    circle = [
        _with_children(node, own(node), known) for node in graph.nodes if id(node) not in known
    ]
    if circle:
        return min(sum(each.most for each in circle), _WEIGHT_MAX)
    return known.get(id(graph.root), _NOTHING).most


def _with_children(node: Node, own: _Weight, known: Mapping[int, _Weight]) -> _Weight:
    here, below, one_of_them = own.here, own.below, {"object": 0, "array": 0}
    for keyword, _, child in node.subschemas():
        weight = known.get(id(child), _NOTHING)
        if keyword in IN_PLACE or keyword in ("then", "else"):
            here, below = here + weight.here, below + weight.below
        elif keyword in ("properties", "additionalProperties"):
            one_of_them["object"] = max(one_of_them["object"], weight.most)
        elif keyword in ("items", "prefixItems", "additionalItems"):
            one_of_them["array"] = max(one_of_them["array"], weight.most)
        else:
            below += weight.most
    below += max(one_of_them.values())
    return _Weight(min(here, _WEIGHT_MAX), min(below, _WEIGHT_MAX))


def _of_elements(node: Node) -> _Weight:
    here = 1 + len(node.children.get("properties", ())) // 16
    for options in (node.keywords.get("enum", ()), [node.keywords.get("const")]):
        here += sum(1 + size_of(each) for each in options if isinstance(each, dict | list))
    if "multipleOf" in node.keywords:
        here += _DIVIDED
    below = len(node.children.get("patternProperties", ())) // 4
    if node.keywords.get("uniqueItems") is True:
        below += _HASHED
    return _Weight(here, below)


def _of_characters(node: Node) -> _Weight:
    here = [node.keywords["pattern"]] if "pattern" in node.keywords else []
    # A member's name counts as a separate element.
    names = list(node.children.get("patternProperties", ()))
    return _Weight(_positions(here) + _positions(names), 0)


def _positions(patterns: Iterable[str]) -> int:
    widths = (_extent(pattern)[0] for pattern in patterns)
    return sum(width for width in widths if width > _FEW)
