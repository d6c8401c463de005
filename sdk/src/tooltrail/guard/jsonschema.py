"""A compiled JSON Schema: a fast verdict first, the slow explanation only on failure.

Owns the verdict and the cache of compiled schemas. jsonschema-rs gets a rewritten schema
(`native`), so that whatever it accepts is also valid by JavaScript's rules for values. What it
rejects, `explain` checks again; its result is final.
"""

import marshal
from collections import OrderedDict
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tooltrail.guard.engine import schema_validator
from tooltrail.guard.explain import examine
from tooltrail.guard.members import size_of
from tooltrail.guard.native import may_invert, native_schema
from tooltrail.guard.nodes import IN_PLACE, Graph, Node
from tooltrail.guard.reading import copy_schema, read_schema
from tooltrail.guard.regex import matcher
from tooltrail.guard.violations import MORE, Judgement, Violation
from tooltrail.guard.work import (
    DECIDED_STEPS,
    EXPLAINED_STEPS,
    LIGHT,
    NATIVE_STEPS,
    NATIVE_STEPS_AT_LAST,
    STEPS_PER_ELEMENT,
    Weights,
    weights_of,
)

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_CACHE_SIZE: Final = 512  # schemas; a process has as many as it has tools
_UNFOLDED_LIMIT: Final = 20_000  # sub-schemas with references followed: ms per element
_SIZE_MAX: Final = 500_000  # elements that are counted at most; a value may contain itself
_NATIVE_NODES_LIMIT: Final = 2_000  # jsonschema-rs compiles references recursively


@dataclass(frozen=True, slots=True, eq=False)
class CompiledSchema:
    """A schema compiled to validate values. Later changes to the original have no effect."""

    graph: Graph
    native: "Validator | None"
    weights: Weights
    basic_plane_only: bool
    assert_formats: bool

    @property
    def root(self) -> Node:
        """The schema's root node."""
        return self.graph.root

    def violations(self, value: Any, steps: int = EXPLAINED_STEPS) -> list[Violation]:
        """List the violations of `value`; an empty list means that it is valid.

        Explaining takes at most `steps`. If it stops there, the last entry is `MORE`. A value
        whose verdict takes more than `DECIDED_STEPS`, and more than its size allows, is rejected
        with `MORE` alone.
        """
        judged = self.judge(value, steps, patience=DECIDED_STEPS)
        if judged.is_valid is None:
            judged = self.verdict(value, NATIVE_STEPS_AT_LAST)
        if judged.is_valid is None:
            patience = STEPS_PER_ELEMENT * size_of(value, _SIZE_MAX)
            judged = self.judge(value, steps, patience=patience)
        return [MORE] if judged.is_valid is None else judged.violations

    def judge(
        self, value: Any, steps: int, *, patience: int = 0, length: int | None = None
    ) -> Judgement:
        """Judge `value` in at most `steps` (see `tooltrail.guard.work`).

        Until a violation is found, `patience` is the limit if it is higher. With `patience`, work
        of jsonschema-rs that is linear in the value is not counted. If a text of `length` bytes
        contained the value, and no value of that length takes too long, its elements are not
        counted; the steps of the result are then the most that they may have been.
        """
        native, cost = (
            self._native_verdict(value, NATIVE_STEPS, light=LIGHT)
            if patience
            else self._native_verdict(value, steps // 2, length=length)
        )
        if native is True:
            return Judgement(True, [], cost)
        violations, is_whole, spent = examine(
            self.root,
            value,
            remember=self.native is None,
            formats=self.assert_formats,
            steps=steps if patience else steps - cost,
            patience=patience,
        )
        if is_whole:
            return Judgement(not violations, violations, cost + spent)
        if not violations and (native is None or _may_have_wide_text(value)):
            return Judgement(None, [], cost + spent)
        return Judgement(False, [*violations, MORE], cost + spent)

    def verdict(self, value: Any, steps: int) -> Judgement:
        """Judge `value` without explaining. `is_valid` is None if that needs more steps."""
        native, cost = self._native_verdict(value, steps)
        if native is False and _may_have_wide_text(value):
            native = None
        return Judgement(native, [] if native is not False else [MORE], cost)

    def _native_verdict(
        self, value: Any, limit: int, *, light: int = 0, length: int | None = None
    ) -> tuple[bool | None, int]:
        """The verdict of jsonschema-rs if its work is bounded, and the steps it may have taken.

        False may be too strict for characters beyond U+FFFF; see `native`.
        """
        if self.native is None:
            return None, 0
        cost = limit + 1 if length is None else self.weights.cost_at_most(length)
        if cost > limit:
            cost = self.weights.cost(value, limit, light)
        if cost > limit:
            return None, 0
        try:
            is_valid = self.native.is_valid(value)
        except ValueError:  # a lone surrogate, a set, a number as key: not valid in JSON
            return None, cost
        if is_valid and self.basic_plane_only and _has_wide_text(value):
            return None, cost
        return is_valid, cost


def compile_schema(schema: Mapping[str, Any], *, assert_formats: bool = False) -> CompiledSchema:
    """Compile a schema, or return it from the cache, which takes about 0.3 µs for a known object.

    An entry keeps its schema, so that another object cannot get the same identity. It also keeps
    a copy to compare with, so that changes are noticed. Equal schemas share one compilation.
    Raises SchemaError.
    """
    key = (id(schema), assert_formats)
    entry = _cache.get(key)
    if entry is not None and entry.copy == schema:
        try:  # noqa: SIM105  # `suppress` costs more than all the rest
            _cache.move_to_end(key)
        except KeyError:  # another thread just dropped it
            pass
        return entry.compiled
    plain_schema = copy_schema(schema)
    compiled = _compile(marshal.dumps(plain_schema), assert_formats)
    with _cache_lock:
        _cache[key] = _Entry(schema, _comparable(plain_schema), compiled)
        _cache.move_to_end(key)
        while len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    return compiled


@dataclass(frozen=True, slots=True)
class _Entry:
    schema: Mapping[str, Any]
    copy: Any
    compiled: CompiledSchema


_cache: OrderedDict[tuple[int, bool], _Entry] = OrderedDict()
_cache_lock = Lock()


class _Exactly:
    """Equal only to a boolean or number of the same type, unlike True, which equals 1."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]  # as Python documents it

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self.value) and other == self.value


def _comparable(schema: Any, *, is_value: bool = False) -> Any:
    """Copy a schema for comparison. In values, 1 and True are different."""
    match schema:
        case dict():
            return {
                key: _comparable(member, is_value=is_value or key in ("const", "enum", "default"))
                for key, member in schema.items()
            }
        case list():
            return [_comparable(item, is_value=is_value) for item in schema]
        case 0 | 1 if is_value:
            return _Exactly(schema)
    return schema


@lru_cache(maxsize=_CACHE_SIZE)
def _compile(content: bytes, assert_formats: bool) -> CompiledSchema:
    graph = read_schema(marshal.loads(content))  # noqa: S302  # written just above the only call
    for node in graph.nodes:
        for pattern in (node.keywords.get("pattern"), *node.children.get("patternProperties", ())):
            if pattern is not None:
                matcher(pattern)  # reject patterns the engine cannot run before any tool runs
    native = None
    if not _may_explode(graph):
        with suppress(ValueError):  # a lone surrogate in the schema: it has no UTF-8
            schema = native_schema(graph)
            native = schema_validator(graph.draft, schema, validate_formats=assert_formats)
    return CompiledSchema(graph, native, weights_of(graph), may_invert(graph), assert_formats)


def _may_have_wide_text(value: Any) -> bool:
    """As `_has_wide_text`, for any value. A value too large to be searched counts as True."""
    return size_of(value, _SIZE_MAX) > _SIZE_MAX or _has_wide_text(value)


def _has_wide_text(value: Any) -> bool:
    """Whether a value that jsonschema-rs can read contains a character beyond U+FFFF."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                if not text.isascii() and max(text) > "\uffff":
                    return True
            case (
                int() | float() | None
            ):  # before Mapping, which takes ten times as long to rule out
                pass
            case list() | tuple() as items:
                waiting += items
            case Mapping() as members:
                waiting += members
                waiting += members.values()
    return False


def _may_explode(graph: Graph) -> bool:
    """Whether some value could take exponential time, or the compiler too much stack.

    A recursive schema is harmless if it leads to each element of a value only once. So:
    1. Remove, leaf by leaf, what is not recursive, and count how many sub-schemas each of
       these unfolds to.
    2. For the rest, count the ways back into the recursion for one and the same element.
    """
    if len(graph.nodes) > _NATIVE_NODES_LIMIT:
        return True
    unfolded: dict[int, int] = {}

    def unfold(node: Node) -> int:
        below = sum(unfolded.get(id(child), 0) for _, _, child in node.subschemas())
        return min(1 + below, _UNFOLDED_LIMIT)

    for node in graph.leaves_first():
        unfolded[id(node)] = unfold(node)
    circle = [node for node in graph.nodes if id(node) not in unfolded]
    return max([*unfolded.values(), *map(unfold, circle)], default=0) >= _UNFOLDED_LIMIT or any(
        _ways_back(node, unfolded.keys()) > 1 for node in circle
    )


def _ways_back(node: Node, finished: Set[int]) -> int:
    ways = {"in place": 0, "object": 0, "pattern": 0, "array": 0, "contains": 0}
    for keyword, _, child in node.subschemas():
        if child.always is not None or id(child) in finished:
            continue
        if keyword in IN_PLACE:
            ways["in place"] += 1
        elif keyword in ("patternProperties", "unevaluatedProperties"):
            ways["pattern"] += 1
        elif keyword in ("contains", "unevaluatedItems"):
            ways["contains"] += 1
        elif keyword in ("properties", "additionalProperties"):
            ways["object"] = 1
        elif keyword in ("items", "prefixItems", "additionalItems"):
            ways["array"] = 1
    below = max(ways["object"] + ways["pattern"], ways["array"] + ways["contains"])
    return ways["in place"] + below
