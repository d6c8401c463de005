"""Builds a schema that allows for the observed values: a draft for a person to review. Pure.

Declared parts stay as written; observed fields and types are added. Listed values do not change,
because other values are payload. Parts behind references and alternatives do not change either:
a person must decide where an addition belongs.
"""

from typing import Any, Final

from audit.work.drift.declared import MAPS, REST
from audit.work.drift.shape import REDACTED, Shape

_ELSEWHERE: Final = {"$ref", "allOf", "anyOf", "oneOf", "if", "not", "patternProperties", "const"}
"""A schema with one of these keywords cannot simply get another type or field."""
_PARTS: Final = {"number": ("integer", "fraction")}


def observed_schema(shape: Shape) -> dict[str, Any]:
    """A schema of exactly what was observed: types, fields, and fields that were always present."""
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
    """A registered schema with the additional types and fields that were observed."""
    if not _ELSEWHERE.isdisjoint(schema):
        return schema
    wider = dict(schema)
    kinds = [kind for kind in shape.types if kind != REDACTED]
    if "type" in wider and "enum" not in wider:
        named = [wider["type"]] if isinstance(wider["type"], str) else list(wider["type"])
        known = {part for name in named for part in _PARTS.get(name, (name,))}
        if any(kind not in known for kind in kinds):
            wider["type"] = _types([*known, *kinds])
    properties = dict(wider.get("properties", {}))
    is_map = any(isinstance(wider.get(word), dict) for word in MAPS)
    for name, member in shape.members.items():
        known_as = properties.get(name)
        if isinstance(known_as, dict):
            properties[name] = widened(known_as, member)
        elif name == REST:
            for word in MAPS:
                if wider.get(word) is False:
                    wider[word] = observed_schema(member)
        elif known_as is None and not is_map:
            properties[name] = observed_schema(member)
    if properties:
        wider["properties"] = properties
    if shape.items is not None and isinstance(wider.get("items"), dict):
        wider["items"] = widened(wider["items"], shape.items)
    return wider


def _types(kinds: list[str]) -> str | list[str]:
    """Types as a schema names them: `number` includes `integer`."""
    names = {"number" if kind == "fraction" else kind for kind in kinds}
    if "number" in names:
        names.discard("integer")
    return names.pop() if len(names) == 1 else sorted(names)
