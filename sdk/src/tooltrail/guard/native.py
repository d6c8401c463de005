"""Writes a schema graph for jsonschema-rs, so that whatever it accepts is valid.

Owns the differences between that library's rules for values and JavaScript's. All of them are
in texts: JavaScript counts lengths in UTF-16 units, and its patterns match these units.
"""

from collections import Counter, deque
from typing import Any, Final

from tooltrail.guard.nodes import Graph, Node
from tooltrail.guard.regex import plain

_BASIC_PLANE: Final = {"pattern": r"^[\x{0}-\x{ffff}]*$"}
_TEXT_RULES: Final = frozenset(["pattern", "patternProperties", "minLength", "maxLength"])


def native_schema(graph: Graph) -> dict[str, Any]:
    """Write a graph as a schema that accepts nothing invalid; it may reject too much.

    This holds as long as no keyword turns a rejection into an acceptance; see `may_invert`.
    """
    return _Writer(graph).whole()


def may_invert(graph: Graph) -> bool:
    """Whether there is a rule for texts where being stricter may accept more, as inside `not`.

    If so, the native verdict counts only for values without characters beyond U+FFFF.
    """
    reached: dict[int, Node] = {}
    waiting: list[Node] = []
    for node in graph.nodes:
        for keyword, _, child in node.subschemas():
            if keyword in ("not", "if", "oneOf") or (
                keyword == "contains" and "maxContains" in node.keywords
            ):
                waiting.append(child)
            elif keyword in ("unevaluatedItems", "unevaluatedProperties"):
                waiting.append(node)
    while waiting:
        node = waiting.pop()
        if id(node) not in reached:
            reached[id(node)] = node
            waiting += (child for _, _, child in node.subschemas())
    return any(not _TEXT_RULES.isdisjoint(node.keywords) for node in reached.values())


class _Writer:
    """Writes each node in place, or as a definition if several ways lead to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ways = Counter(id(child) for node in graph.nodes for _, _, child in node.subschemas())
        self.ways[id(graph.root)] += 1
        self.definitions: dict[int, int] = {}
        self.queue: deque[Node] = deque()

    def whole(self) -> dict[str, Any]:
        root = self.reference(self.graph.root)
        written: dict[str, Any] = {}
        while self.queue:
            node = self.queue.popleft()
            written[str(self.definitions[id(node)])] = self.node(node)
        return {**root, "definitions": written}

    def reference(self, node: Node) -> dict[str, str]:
        """Make a reference to a node, which is written once among the definitions."""
        if id(node) not in self.definitions:
            self.definitions[id(node)] = len(self.definitions)
            self.queue.append(node)
        return {"$ref": f"#/definitions/{self.definitions[id(node)]}"}

    def subschema(self, node: Node) -> Any:
        if node.always is not None:
            return node.always
        return self.reference(node) if self.ways[id(node)] > 1 else self.node(node)

    def node(self, node: Node) -> Any:
        if node.always is not None:
            return node.always
        out: dict[str, Any] = {}
        more: list[Any] = []
        for keyword, value in node.keywords.items():
            match keyword:
                case "default":
                    continue
                case "$ref" | "$dynamicRef" | "$recursiveRef":
                    more.append(self.subschema(node.children[keyword]))
                case "type" | "enum" | "anyOf" | "oneOf" if value == []:
                    more.append({"not": {}})
                case "allOf" if value == []:
                    continue
                case "pattern":
                    out[keyword] = plain(value)
                case "patternProperties":
                    members = node.children[keyword].items()
                    more.append({"propertyNames": _BASIC_PLANE})
                    out[keyword] = {plain(key): self.subschema(child) for key, child in members}
                case "maxLength":
                    # Half as many characters never have too many units. Any number up to the
                    # limit is valid if no character takes two units.
                    half = {"maxLength": int(value) // 2}
                    more.append({"anyOf": [half, {"maxLength": value, **_BASIC_PLANE}]})
                case _ if keyword in node.children:
                    out[keyword] = self.children(node.children[keyword], value)
                case _:
                    out[keyword] = value
        if more and not out:
            return more[0] if len(more) == 1 else {"allOf": more}
        if more:
            out["allOf"] = [*out.get("allOf", ()), *more]
        return out

    def children(self, children: Any, value: Any) -> Any:
        if isinstance(children, Node):
            return self.subschema(children)
        if isinstance(children, list):
            return [self.subschema(child) for child in children]
        written = {key: self.subschema(child) for key, child in children.items()}
        return {**(value or {}), **written}  # `dependencies` on plain names have no node
