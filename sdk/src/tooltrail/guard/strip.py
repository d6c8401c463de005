"""Removes the members of an output that its schema does not declare.

Owns what counts as declared. Never changes its input and never removes a declared member. An
object stays unchanged if its schema declares no members or allows others.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tooltrail.guard.explain import VALUE_DEPTH_LIMIT
from tooltrail.guard.jsvalues import kind_of
from tooltrail.guard.nodes import IN_PLACE, Node
from tooltrail.guard.regex import matcher

_SAME_VALUE: Final = IN_PLACE - {"not"}


def strip(root: Node, value: Any) -> tuple[Any, list[str]]:
    """Remove undeclared members everywhere. Returns the result and the removed paths.

    An object is always returned as a new object, as in tool-output-guard.
    """
    removed: list[str] = []
    stripped = _strip([root], value, "$", removed, 0)
    if stripped is value and kind_of(value) == "object":
        stripped = dict(value)
    return stripped, removed


def _strip(nodes: Iterable[Node], value: Any, path: str, removed: list[str], depth: int) -> Any:
    if depth > VALUE_DEPTH_LIMIT:
        return value
    match kind_of(value):
        case "object":
            return _strip_object(_together(nodes), value, path, removed, depth)
        case "array":
            return _strip_array(_together(nodes), value, path, removed, depth)
    return value


def _together(nodes: Iterable[Node]) -> list[Node]:
    """List the nodes and all nodes that apply to the same value, each once."""
    by_id: dict[int, Node] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if id(node) not in by_id:
            by_id[id(node)] = node
            waiting += (child for key, _, child in node.subschemas() if key in _SAME_VALUE)
    return list(by_id.values())


def _strip_object(
    nodes: list[Node], value: Mapping[str, Any], path: str, removed: list[str], depth: int
) -> Mapping[str, Any]:
    declares = any("properties" in node.children for node in nodes)
    keeps_all = not declares or any(map(_allows_others, nodes))
    kept: dict[str, Any] = {}
    for name, member in value.items():
        below = [child for node in nodes for child in _schemas_of(node, name)]
        if keeps_all or any(name in node.children.get("properties", ()) for node in nodes):
            kept[name] = _strip(below, member, f"{path}.{name}", removed, depth + 1)
        else:
            removed.append(f"{path}.{name}")
    is_same = len(kept) == len(value) and all(kept[name] is value[name] for name in kept)
    return value if is_same else kept


def _allows_others(node: Node) -> bool:
    others = [node.children.get("additionalProperties"), node.children.get("unevaluatedProperties")]
    return bool(node.children.get("patternProperties")) or any(
        each is not None and each.always is not False for each in others
    )


def _schemas_of(node: Node, name: str) -> list[Node]:
    schemas = [
        child
        for pattern, child in node.children.get("patternProperties", {}).items()
        if matcher(pattern)(str(name))
    ]
    if name in node.children.get("properties", ()):
        schemas.append(node.children["properties"][name])
    elif not schemas and "additionalProperties" in node.children:
        schemas.append(node.children["additionalProperties"])
    return schemas


def _strip_array(nodes: list[Node], value: Any, path: str, removed: list[str], depth: int) -> Any:
    items = [
        _strip(
            [child for node in nodes for child in _schemas_at(node, position)],
            item,
            f"{path}[{position}]",
            removed,
            depth + 1,
        )
        for position, item in enumerate(value)
    ]
    is_same = all(new is old for new, old in zip(items, value, strict=True))
    return value if is_same else items


def _schemas_at(node: Node, position: int) -> list[Node]:
    items = node.children.get("items")
    first = items if isinstance(items, list) else node.children.get("prefixItems", [])
    if position < len(first):
        return [first[position]]
    rest = node.children.get("additionalItems") if isinstance(items, list) else items
    return [rest] if isinstance(rest, Node) else []
