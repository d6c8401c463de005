"""Normalizes a schema: resolves references and translates older dialects to 2020-12.

A node is a schema as written: an object or a boolean. A view is its normalized object: without
`$ref`, with `prefixItems` and `items` as in 2020-12, and with `anyOf` for a `oneOf` whose
alternatives exclude each other. References to other documents are not followed.
"""

from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from tools_registry.schema_diff.effect import NOTES
from tools_registry.schema_diff.keywords import allowed_values, types_of

type Node = dict[str, Any] | bool
type View = dict[str, Any]

NOTHING: View = {"not": {}}
"""The view of `false`."""

_DEFINITIONS = {"$defs", "definitions"}
_DYNAMIC = {"$dynamicRef", "$recursiveRef"}
_ANCHORS = {"$anchor", "$dynamicAnchor", "$recursiveAnchor", *_DYNAMIC}
_REF_ALONE = ("draft-06", "draft-07")
"""Dialects in which keywords beside a `$ref` are ignored."""
_FOREIGN = "guards accept a keyword that its dialect does not have"
_KNOWN = ("2020-12", "2019-09", *_REF_ALONE)
_BEHIND_MAX = 60
_READS_MAX = 50_000  # per document; a document has room for some 10,000 nodes
_DEPTH_MAX = 4  # levels of properties searched for a difference between alternatives


class UndecidedError(Exception):
    """It cannot be decided what the schema accepts; the message is the reason."""


class Document:
    """One schema with everything that it refers to.

    Raises UndecidedError for an unsupported dialect.
    """

    def __init__(self, root: Node) -> None:
        self.root = root
        self.dialect = self._read_dialect()
        self._has_anchors = _mentions(root, _ANCHORS) or (
            isinstance(root, dict) and any(_mentions(each, {"$id"}) for each in root.values())
        )
        self._views: dict[int, tuple[Any, View]] = {}
        self._reads = 0

    def view(self, node: Node) -> View:
        """The view of a node. Raises UndecidedError."""
        if isinstance(node, bool):
            return {} if node else NOTHING
        known = self._views.get(id(node))
        if known is None:
            # The node is stored, too: its id is unique only while it lives.
            known = self._views[id(node)] = (node, self._read(node, ()))
        return known[1]

    def _read_dialect(self) -> str:
        declared = self.root.get("$schema", "2020-12") if isinstance(self.root, dict) else "2020-12"
        for dialect in _KNOWN:
            if dialect in str(declared):
                return dialect
        raise UndecidedError(f"the dialect {str(declared)[:100]!r} is not supported")

    def _read(self, node: Node, behind: tuple[int, ...]) -> View:
        if isinstance(node, bool):
            return {} if node else NOTHING
        if not isinstance(node, dict):  # a list of items in a dialect that has none
            raise UndecidedError(_FOREIGN)
        if id(node) in behind:
            raise UndecidedError("a reference points back to itself")
        if len(behind) > _BEHIND_MAX:
            raise UndecidedError("too many nested references")
        self._reads += 1
        if self._reads > _READS_MAX:  # comparing alternatives reads all that they refer to
            raise UndecidedError("too many nested alternatives")
        if not _DYNAMIC.isdisjoint(node):
            raise UndecidedError("dynamic references are not supported")
        behind = (*behind, id(node))
        view = dict(node)
        for word in _DEFINITIONS & view.keys():
            del view[word]
        if [] in (view.get(word) for word in ("type", "allOf", "anyOf", "oneOf")) or (
            view.get("properties", {}) is None
        ):
            raise UndecidedError(_FOREIGN)
        if "$ref" in view:
            target = self._follow(view.pop("$ref"))
            beside = {word for word in view if word not in NOTES}
            if beside and self.dialect not in _REF_ALONE:
                view["allOf"] = [*view.get("allOf", []), target]
            else:
                notes = {word: value for word, value in view.items() if word in NOTES}
                view = {**self._read(target, behind), **notes}
        if self.dialect != "2020-12":
            self._modernise(view)
        alone = view.get("allOf", ())
        if len(alone) == 1 and not {word for word in view if word not in NOTES} - {"allOf"}:
            del view["allOf"]
            view = {**self._read(alone[0], behind), **view}
        if "oneOf" in view and "anyOf" not in view and self._are_disjoint(view["oneOf"], behind):
            view["anyOf"] = view.pop("oneOf")
        return view

    def _modernise(self, view: View) -> None:
        if isinstance(view.get("items"), list):
            view["prefixItems"] = view.pop("items")
            if "additionalItems" in view:
                view["items"] = view.pop("additionalItems")
        else:
            view.pop("additionalItems", None)  # has no meaning without a list
        if self.dialect in _REF_ALONE:
            for name, needs in view.pop("dependencies", {}).items():
                kind = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
                view[kind] = {**view.get(kind, {}), name: needs}

    def _follow(self, reference: str) -> Node:
        if self._has_anchors:
            raise UndecidedError("anchors and nested schemas with an $id are not supported")
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            raise UndecidedError(
                f"the reference {reference[:100]!r} does not point into the schema"
            )
        target: Any = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            try:
                target = target[int(part)] if isinstance(target, list) else target[part]
            except (LookupError, ValueError, TypeError):
                raise UndecidedError(f"the reference {reference[:100]!r} does not exist") from None
        if not isinstance(target, dict | bool):
            raise UndecidedError(f"the reference {reference[:100]!r} does not point to a schema")
        return target

    def _are_disjoint(self, nodes: list[Node], behind: tuple[int, ...]) -> bool:
        if len(nodes) > 50:  # the number of pairs is quadratic
            return False
        views = [self._read(node, behind) for node in nodes]
        return all(
            self._exclude(one, other, behind, _DEPTH_MAX)
            for index, one in enumerate(views)
            for other in views[:index]
        )

    def _exclude(self, one: View, other: View, behind: tuple[int, ...], deeper: int) -> bool:
        """Whether no value is accepted by both. True is certain; False may mean "unknown"."""
        if not types_of(one) & types_of(other):
            return True
        values, others = allowed_values(one), allowed_values(other)
        if values is not None and others is not None and not values.keys() & others.keys():
            return True
        if deeper == 0 or types_of(one) != {"object"} or types_of(other) != {"object"}:
            return False
        properties, others_properties = one.get("properties", {}), other.get("properties", {})
        for name in set(one.get("required", ())) & set(other.get("required", ())):
            if name in properties and name in others_properties:
                with suppress(UndecidedError):
                    mine = self._read(properties[name], behind)
                    if self._exclude(
                        mine, self._read(others_properties[name], behind), behind, deeper - 1
                    ):
                        return True
        return False


def _mentions(value: Any, words: set[str]) -> bool:
    """Whether any object inside the value has one of these members, even in example data."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if not words.isdisjoint(one):
                return True
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return False
