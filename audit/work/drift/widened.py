"""A schema that allows for what was observed: for a draft, which a person then looks through. Pure.

What is declared stays as it was written; added are fields and types that came. Listed values are
left alone (what came instead is payload), and so is whatever lies behind references and
alternatives: there a person decides where it belongs.
"""

from typing import Any, Final

from audit.work.drift.declared import MAPS, REST
from audit.work.drift.shape import REDACTED, Shape

_ELSEWHERE: Final = {"$ref", "allOf", "anyOf", "oneOf", "if", "not", "patternProperties", "const"}
"""Keywords beside which a type or a field cannot just be added."""
_PARTS: Final = {"number": ("integer", "fraction")}


def observed_schema(shape: Shape) -> dict[str, Any]:
    """A schema of exactly what was observed: types, fields, and which are always there."""
    kinds = [kind for kind in shape.types if kind != REDACTED]
    schema: dict[str, Any] = {}
    if len(kinds) == len(shape.types) and kinds:
        schema["type"] = _types(kinds)
    if shape.objects:
        schema["properties"] = {
            name: observed_schema(member) for name, member in shape.members.items() if name != REST
        }
        if REST in shape.members:
            schema["additionalProperties"] = observed_schema(shape.members[REST])
        always = [
            name for name in schema["properties"] if shape.members[name].times == shape.objects
        ]
        if always:
            schema["required"] = always
    if shape.items is not None:
        schema["items"] = observed_schema(shape.items)
    return schema


def widened(schema: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """A registered schema with what came beside it."""
    if not _ELSEWHERE.isdisjoint(schema):
        return schema
    found = dict(schema)
    kinds = [kind for kind in shape.types if kind != REDACTED]
    if "type" in found and "enum" not in found:
        named = [found["type"]] if isinstance(found["type"], str) else list(found["type"])
        known = {part for name in named for part in _PARTS.get(name, (name,))}
        if any(kind not in known for kind in kinds):
            found["type"] = _types([*known, *kinds])
    properties = dict(found.get("properties", {}))
    is_map = any(isinstance(found.get(word), dict) for word in MAPS)
    for name, member in shape.members.items():
        known_as = properties.get(name)
        if isinstance(known_as, dict):
            properties[name] = widened(known_as, member)
        elif name == REST:
            for word in MAPS:
                if found.get(word) is False:
                    found[word] = observed_schema(member)
        elif known_as is None and not is_map:
            properties[name] = observed_schema(member)
    if properties:
        found["properties"] = properties
    if shape.items is not None and isinstance(found.get("items"), dict):
        found["items"] = widened(found["items"], shape.items)
    return found


def _types(kinds: list[str]) -> str | list[str]:
    """Types as a schema names them: `integer` goes into `number`."""
    names = {"number" if kind == "fraction" else kind for kind in kinds}
    if "number" in names:
        names.discard("integer")
    return names.pop() if len(names) == 1 else sorted(names)
