"""What a schema declares at each place of a value: names, types, listed values. Pure.

A place combines all schemas that may apply there. With alternatives (`anyOf`, `oneOf`, `if`),
whatever one of them declares counts as declared. So a member that no place declares is in none of
the schemas. This does not validate values and runs no pattern: the guard validates.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from tools_registry.schema_diff.keywords import TYPES, allowed_values, json_key, types_of
from tools_registry.schema_diff.reading import Document, Node, UndecidedError, View

SCHEMAS_MAX: Final = 200
"""The most schemas that may apply at one place."""
DEEPER_MAX: Final = 8
"""Levels of nested schemas from which types and listed values are read."""
REST: Final = "*"
"""The name for all members of a map, which are not declared by name."""
MAPS: Final = ("additionalProperties", "unevaluatedProperties")
"""Keywords of a map: their schema applies to its members; false allows no others."""

_TOGETHER: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("if", "then", "else")


@dataclass(frozen=True, slots=True)
class Place:
    """What is declared of the values at one place."""

    types: frozenset[str]
    """Types of JSON Schema; `number` is split into `integer` and `fraction`."""
    values: frozenset[str] | None
    """The listed values, as keys of `json_key`; None if the schema lists none."""
    members: dict[str, tuple[Node, ...]]
    """Schemas of members by their names."""
    required: frozenset[str]
    """Members that one of the place's own schemas requires; subschemas do not count."""
    rest: tuple[Node, ...]
    """Schemas of the members of a map."""
    items: tuple[Node, ...]
    is_closed: bool
    """Whether undeclared members are rejected."""


_UNREAD: Final[Node] = {"$dynamicRef": "#"}
_ANYTHING: Final = Place(
    types=TYPES,
    values=None,
    members={},
    required=frozenset(),
    rest=(_UNREAD,),
    items=(_UNREAD,),
    is_closed=False,
)
"""Used below the top where a schema cannot be read: no value differs from it."""


class Declared:
    """A schema with its places. Raises UndecidedError if it cannot be read at its top."""

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self._document = Document(schema)
        self._places: dict[tuple[int, ...], Place] = {}
        # Keyed by node and levels left: many references may lead to the same node.
        self._known_types: dict[tuple[int, int], frozenset[str]] = {}
        self._known_values: dict[tuple[int, int], frozenset[str] | None] = {}
        self.root = self._read((schema,))

    def place(self, nodes: tuple[Node, ...]) -> Place:
        """The place where these schemas apply."""
        key = tuple(map(id, nodes))
        known = self._places.get(key)
        if known is None:
            try:
                known = self._read(nodes)
            except UndecidedError:
                known = _ANYTHING
            self._places[key] = known
        return known

    def member(self, place: Place, name: str) -> tuple[str, Place | None]:
        """The name a member is counted under, and its place; None if it is not declared."""
        nodes = place.members.get(name)
        if nodes is not None:
            return name, self.place(nodes)
        if place.rest:
            return REST, self.place(place.rest)
        return name, None

    def item(self, place: Place) -> Place | None:
        """The place of an array's items; None if the schema says nothing about them."""
        return self.place(place.items) if place.items else None

    def unlisted(self, value: Any, steps: Sequence[str | None]) -> Iterator[Any]:
        """The values at a path that are not listed there; the step `*` is any member of a map."""
        pairs = [(value, self.root)]
        for step in steps:
            below: list[tuple[Any, Place]] = []
            for each, place in pairs:
                if step is None and isinstance(each, list):
                    inner = self.item(place)
                    below += [(item, inner) for item in each if inner is not None]
                elif step is not None and isinstance(each, dict):
                    for name, member in each.items():
                        known_as, inner = self.member(place, name)
                        if known_as == step and inner is not None:
                            below.append((member, inner))
            pairs = below
        for each, place in pairs:
            if place.values is not None and json_key(each) not in place.values:
                yield each

    def _read(self, nodes: tuple[Node, ...]) -> Place:
        views = list(self._views(nodes))
        own = len(set(map(id, nodes)))  # the same schema may be given twice; it is viewed once
        members: dict[str, tuple[Node, ...]] = {}
        rest: list[Node] = []
        items: list[Node] = []
        for view in views:
            for name, node in view.get("properties", {}).items():
                members[name] = (*members.get(name, ()), node)
            rest += view.get("patternProperties", {}).values()
            rest += [view[word] for word in MAPS if isinstance(view.get(word), dict)]
            items += view.get("prefixItems", ())
            items += [view["items"]] if isinstance(view.get("items"), dict) else []
        values = [self._values(node) for node in nodes]
        return Place(
            types=frozenset(chain.from_iterable(map(self._types, nodes))),
            values=_union(values),
            members=members,
            required=frozenset().union(*(view.get("required", ()) for view in views[:own])),
            rest=tuple(node for node in rest if node),
            items=tuple(items),
            is_closed=any(view.get(word) is False for view in views for word in MAPS),
        )

    def _views(self, nodes: Iterable[Node]) -> Iterable[View]:
        """The views of these schemas and of all their subschemas, their own first."""
        waiting, seen = list(nodes), set[int]()
        while waiting:
            node = waiting.pop(0)
            if id(node) in seen:
                continue
            seen.add(id(node))
            if len(seen) > SCHEMAS_MAX:
                raise UndecidedError(f"more than {SCHEMAS_MAX} schemas apply at one place")
            view = self._document.view(node)
            yield view
            for word in _TOGETHER:
                waiting += view.get(word, ())
            waiting += [view[word] for word in _SINGLE if word in view]
            waiting += view.get("dependentSchemas", {}).values()

    def _types(self, node: Node, deeper: int = DEEPER_MAX) -> frozenset[str]:
        key = (id(node), deeper)
        if key not in self._known_types:
            self._known_types[key] = self._read_types(node, deeper)
        return self._known_types[key]

    def _read_types(self, node: Node, deeper: int) -> frozenset[str]:
        view = self._document.view(node)
        if view == {"not": {}}:
            return frozenset()
        types = types_of(view)
        if not deeper:
            return types
        for one in view.get("allOf", ()):
            types &= self._types(one, deeper - 1)
        for word in ("anyOf", "oneOf"):
            if word in view:
                types &= frozenset().union(*(self._types(one, deeper - 1) for one in view[word]))
        return types

    def _values(self, node: Node, deeper: int = DEEPER_MAX) -> frozenset[str] | None:
        key = (id(node), deeper)
        if key not in self._known_values:
            self._known_values[key] = self._read_values(node, deeper)
        return self._known_values[key]

    def _read_values(self, node: Node, deeper: int) -> frozenset[str] | None:
        view = self._document.view(node)
        listed = allowed_values(view)
        values = None if listed is None else frozenset(listed)
        if values is None and types_of(view) == {"null"}:
            return frozenset(("None",))
        if not deeper:
            return values
        for one in view.get("allOf", ()):
            values = _both(values, self._values(one, deeper - 1))
        for word in ("anyOf", "oneOf"):
            if word in view:
                values = _both(
                    values, _union([self._values(one, deeper - 1) for one in view[word]])
                )
        return values


def type_names(types: frozenset[str]) -> list[str]:
    """Types as a schema names them, sorted: `integer` and `fraction` become `number`."""
    if types >= TYPES:
        return ["any"]
    names = types - {"fraction"}
    if "fraction" in types:
        names = (names - {"integer"}) | {"number"}
    return sorted(names)


def _union(values: list[frozenset[str] | None]) -> frozenset[str] | None:
    union: frozenset[str] = frozenset()
    for each in values:
        if each is None:
            return None
        union |= each
    return union


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other
