"""Reads a JSON Schema into a graph: its draft, its sub-schemas, its references.

Owns the rejection of schemas that are malformed, remote, endless, or larger than necessary.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from tooltrail.guard.engine import form_validator
from tooltrail.guard.errors import SchemaError
from tooltrail.guard.jsvalues import js_order
from tooltrail.guard.nodes import VOCABULARY, Graph, Node

# Far more than a readable schema nests, far less than Python's stack allows.
SCHEMA_DEPTH_LIMIT: Final = 100
SCHEMA_SIZE_LIMIT: Final = 25_000  # values in the schema; read in about 50 ms
_REFERENCE_LIMIT: Final = 50  # sub-schemas applied to one value, each inside the last

_SINGLE: Final = (
    "additionalProperties",
    "items",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_DEFINITIONS: Final = ("$defs", "definitions")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def copy_schema(schema: Any) -> Any:
    """Copy a schema into plain dicts and lists, so that later changes to it have no effect.

    Raises SchemaError for values that JSON cannot hold, cycles of Python objects, and more
    nesting or size than any real schema has.
    """
    budget = SCHEMA_SIZE_LIMIT

    def copy(value: Any, depth: int) -> Any:
        nonlocal budget
        budget -= 1
        if depth > SCHEMA_DEPTH_LIMIT:
            raise SchemaError(f"the schema is nested more than {SCHEMA_DEPTH_LIMIT} levels deep")
        if budget < 0:
            raise SchemaError(f"the schema has more than {SCHEMA_SIZE_LIMIT} values")
        match value:
            case float() if not isfinite(value):
                raise SchemaError(f"a schema cannot contain {value}")
            case None | bool() | int() | float():
                return value
            case str():
                return str(value)
            case Mapping():
                return {str(key): copy(member, depth + 1) for key, member in value.items()}
            case list() | tuple():
                return [copy(item, depth + 1) for item in value]
        raise SchemaError(f"a schema cannot contain a {type(value).__name__}")

    return copy(schema, 0)


def read_schema(schema: Any) -> Graph:
    """Read a schema made by `copy_schema`. Raises SchemaError if it cannot be used."""
    draft = _draft_of(schema)
    _check_form(schema, draft)
    reader = _Reader(schema, draft)
    root = reader.node(schema, _Place())
    reader.read_all()
    graph = _without_detours(Graph(root, list(reader.nodes.values()), draft))
    _refuse_endless(graph)
    return graph


def _draft_of(schema: Any) -> str:
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if isinstance(declared, str):
        for draft, names in {"07": ("draft-07", "draft-06"), "2019-09": ("2019-09",)}.items():
            if any(name in declared for name in names):
                return draft
        if "2020-12" in declared:
            return "2020-12"
    has_list = any(isinstance(each.get("items"), list) for _, each in _locations(schema))
    return "07" if has_list else "2020-12"


def _check_form(schema: Any, draft: str) -> None:
    validator = form_validator(draft)
    try:
        if validator.is_valid(schema):
            return
    except ValueError:  # a lone surrogate: it has no UTF-8
        schema = json.loads(json.dumps(schema, ensure_ascii=False).encode("utf-8", "replace"))
    for problem in validator.iter_errors(schema):
        *_, keyword = problem.instance_path or [""]
        # Not in the standard, but Node programs rely on the obvious meaning: no type and no
        # branch can match, no properties are declared.
        if problem.instance == [] and keyword in ("type", "allOf", "anyOf", "oneOf"):
            continue
        if problem.instance is None and keyword == "properties":
            continue
        place = "/".join(map(str, problem.instance_path))
        raise SchemaError(f"malformed schema at #/{place}: {problem.message[:300]}")


def _locations(schema: Any, draft: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """List (base URI, schema) for every place that is a sub-schema by the standard."""
    stack = [("", schema)]
    while stack:
        base, each = stack.pop()
        if not isinstance(each, dict):
            continue
        is_hidden = draft == "07" and "$ref" in each  # draft-07 ignores the siblings of $ref
        if isinstance(own := each.get("$id"), str) and not (own.startswith("#") or is_hidden):
            base = urldefrag(_join(base, own)).url
        yield base, each
        for keyword, value in each.items():
            if keyword in _LISTS and isinstance(value, list):
                stack += [(base, item) for item in value]
            elif keyword in _SINGLE:
                stack.append((base, value))
            elif keyword in (*_MAPS, *_DEFINITIONS) and isinstance(value, dict):
                stack += [(base, member) for member in value.values()]


def _join(base: str, reference: str) -> str:
    if reference.startswith("#"):
        return base + reference  # `urljoin` drops a base such as urn:uuid:…
    try:
        return urljoin(base, reference)
    except ValueError as problem:
        raise SchemaError(f"not a URI reference: {reference!r:.200} ({problem})") from None


class _Place(NamedTuple):
    """The context of a sub-schema: its base URI, and what each dynamic anchor means there."""

    base: str = ""
    scope: tuple[tuple[str, int], ...] = ()  # (anchor, id of the schema it refers to)


class _Reader:
    """Makes one node per sub-schema, from a queue, so that no schema can exhaust the stack.

    The target of `$dynamicRef` depends on the way to it: the outermost resource on that way with
    such an anchor counts. A sub-schema reached with different meanings of an anchor becomes
    several nodes, so that nothing has to be resolved when values are validated.
    """

    def __init__(self, schema: Any, draft: str) -> None:
        self.draft = draft
        self.nodes: dict[tuple[int, tuple[tuple[str, int], ...]], Node] = {}
        self.queue: deque[tuple[Node, _Place]] = deque()
        self.resources: dict[str, Any] = {"": schema}
        self.anchors: dict[tuple[str, str], Any] = {}
        self.dynamic: dict[str, dict[str, int]] = {}  # by resource
        self.known: dict[int, Any] = {}
        self.bases: dict[int, str] = {}
        for base, each in _locations(schema, draft):
            self.known[id(each)] = each
            self.bases[id(each)] = base
            if "$id" in each:
                self.resources[base] = each
            for keyword in ("$anchor", "$dynamicAnchor", "$id"):
                if isinstance(name := each.get(keyword), str):
                    self.anchors.setdefault((base, name.removeprefix("#")), each)
            if isinstance(name := each.get("$dynamicAnchor"), str):
                self.dynamic.setdefault(base, {})[name] = id(each)

    def node(self, schema: Any, place: _Place, under: str = "") -> Node:
        """Return the node of a sub-schema; the queue fills it later."""
        if isinstance(schema, bool):
            return Node({}, always=schema, under=under)
        if not isinstance(schema, dict):
            raise SchemaError(f"a schema must be an object or a boolean, not {schema!r:.80}")
        base, scope = self.bases.get(id(schema), place.base), place.scope
        if base in self.dynamic:
            scope = tuple(sorted({**self.dynamic[base], **dict(scope)}.items()))
        key = (id(schema), scope)
        known = self.nodes.get(key)
        if known is None:
            if len(self.nodes) > SCHEMA_SIZE_LIMIT:
                raise SchemaError("$dynamicRef expands the schema to too many variants")
            known = self.nodes[key] = Node(schema)
            self.queue.append((known, _Place(base, scope)))
        return known

    def read_all(self) -> None:
        while self.queue:
            self.read(*self.queue.popleft())

    def read(self, node: Node, place: _Place) -> None:
        vocabulary = VOCABULARY[self.draft]
        keywords = {key: value for key, value in node.keywords.items() if key in vocabulary}
        node.keywords = keywords
        if self.draft == "07" and "$ref" in keywords:
            node.children["$ref"] = self.resolve(keywords["$ref"], place)
            node.keywords = {"$ref": keywords["$ref"]}  # draft-07 ignores the siblings of $ref
            return
        if "type" in keywords:
            given = keywords["type"]
            node.types = (given,) if isinstance(given, str) else tuple(given)
        for keyword, value in keywords.items():
            if keyword in _LISTS and isinstance(value, list):
                node.children[keyword] = [self.node(item, place, keyword) for item in value]
            elif keyword in _SINGLE:
                node.children[keyword] = self.node(value, place, keyword)
            elif keyword in _MAPS:
                members = value or {}
                node.children[keyword] = {
                    key: self.node(members[key], place, keyword)
                    for key in js_order(members)
                    if not isinstance(members[key], list)  # dependencies on plain names
                }
            elif keyword in _REFERENCES:
                node.children[keyword] = self.resolve(value, place, keyword)

    def resolve(self, reference: str, place: _Place, keyword: str = "$ref") -> Node:
        """The node that a reference leads to. Raises SchemaError if it is not in this schema."""
        if reference.startswith("#"):  # nearly all do; parsing URIs would take most of the time
            target, fragment = place.base, reference[1:]
        else:
            target, fragment = urldefrag(_join(place.base, reference))
        base = target
        if target not in self.resources:
            raise SchemaError(f"remote references are not followed: {reference!r}")
        if not fragment or fragment.startswith("/"):
            schema, base = self.point(self.resources[target], unquote(fragment), target)
        elif (target, fragment) in self.anchors:
            schema = self.anchors[target, fragment]
            if keyword == "$dynamicRef" and schema.get("$dynamicAnchor") == fragment:
                schema = self.known[dict(place.scope).get(fragment, id(schema))]
        else:
            raise SchemaError(f"reference {reference!r} does not exist")
        if id(schema) not in self.known and isinstance(schema, dict):
            _check_form(schema, self.draft)
        return self.node(schema, _Place(base, place.scope), keyword)

    def point(self, schema: Any, pointer: str, base: str) -> tuple[Any, str]:
        """Follow a JSON pointer. Raises SchemaError if it leads nowhere."""
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(schema, dict) and key in schema:
                schema = schema[key]
            elif isinstance(schema, list) and key.isdecimal() and int(key) < len(schema):
                schema = schema[int(key)]
            else:
                raise SchemaError(f"reference '#{pointer}' does not exist")
            base = self.bases.get(id(schema), base)
        return schema, base


def _without_detours(graph: Graph) -> Graph:
    """Replace every reference to a node that is only a reference by its destination."""
    for node in graph.nodes:
        for keyword, child in node.children.items():
            if isinstance(child, Node):
                node.children[keyword] = _destination(child)
            elif isinstance(child, list):
                node.children[keyword] = [_destination(each) for each in child]
            else:
                node.children[keyword] = {key: _destination(each) for key, each in child.items()}
    nodes = [node for node in graph.nodes if node.keywords.keys() != {"$ref"}]
    return Graph(_destination(graph.root), nodes, graph.draft)


def _destination(node: Node) -> Node:
    for _ in range(_REFERENCE_LIMIT):
        if node.keywords.keys() != {"$ref"}:
            return node
        node = node.children["$ref"]
    raise SchemaError("references refer to each other without end")


def _refuse_endless(graph: Graph) -> None:
    """Reject schemas that apply themselves to the same value again, endlessly or nearly so.

    A depth-first search over the in-place sub-schemas, without recursion. Raises
    SchemaError.
    """
    depths: dict[int, int] = {}  # of finished nodes: the longest chain below them
    for start in graph.nodes:
        path: list[tuple[Node, Iterator[Node]]] = [(start, start.applied_in_place())]
        open_nodes = {id(start)}
        while path:
            node, rest = path[-1]
            following = next((each for each in rest if id(each) not in depths), None)
            if following is None:
                path.pop()
                open_nodes.discard(id(node))
                below = _longest(node.applied_in_place(), depths)
                depths[id(node)] = below + 1
                if below > _REFERENCE_LIMIT:
                    raise SchemaError("too many schemas refer to each other in a row")
            elif id(following) in open_nodes:
                raise SchemaError("a schema refers to itself without end for the same value")
            else:
                open_nodes.add(id(following))
                path.append((following, following.applied_in_place()))


def _longest(nodes: Iterable[Node], depths: dict[int, int]) -> int:
    return max((depths[id(node)] for node in nodes), default=0)
