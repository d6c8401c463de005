"""Random schemas and values from a seed; few words, so that they often match."""

import random
from typing import Any

NAMES = ("a", "b", "c", "x1")
TEXTS = ("", "a", "ab", "abc", "x1", "2020-01-01", "é")
NUMBERS = (-1, 0, 1, 1.0, 1.5, 2, 3, 6, 12, 1e20)
SCALARS = (None, True, False, *NUMBERS, *TEXTS)
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
PATTERNS = ("^a", "b$", "^x", "^.{2}$")
DEFINED = ("A", "B")


def some_schema(chance: random.Random, depth: int = 3) -> Any:
    """A schema that compiles and may refer to `#/$defs/A` and `B`."""
    if depth <= 0 or chance.random() < 0.08:
        return chance.choice([True, False, {}, {}, {"type": chance.choice(TYPES)}])
    schema: dict[str, Any] = {}
    for _ in range(chance.randint(1, 3)):
        schema.update(_some_words(chance, depth - 1))
    return schema


def some_document(chance: random.Random) -> dict[str, Any]:
    """A schema with its definitions, which may be recursive."""
    schema = some_schema(chance)
    root = schema if isinstance(schema, dict) else {"allOf": [schema]}
    document = {**root, "$defs": {name: some_schema(chance) for name in DEFINED}}
    if chance.random() < 0.15:
        document["$schema"] = "http://json-schema.org/draft-07/schema#"
        if chance.random() < 0.5:
            document["items"] = [some_schema(chance, 1), some_schema(chance, 1)]
            document["additionalItems"] = some_schema(chance, 1)
    return document


def changed(chance: random.Random, schema: Any) -> Any:
    """A copy in which one or two places are another."""
    for _ in range(chance.randint(1, 2)):
        schema = _change(chance, schema, 4)
    return schema


def some_value(chance: random.Random, depth: int = 3) -> Any:
    """Any JSON value."""
    kind = chance.random()
    if depth <= 0 or kind < 0.4:
        return chance.choice(SCALARS)
    if kind < 0.65:
        return [some_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    names = chance.sample(NAMES, chance.randint(0, 3))
    return {name: some_value(chance, depth - 1) for name in names}


def fitting_value(chance: random.Random, schema: Any, root: Any, depth: int = 5) -> Any:
    """A value made along a schema: more often accepted than one by chance."""
    if not isinstance(schema, dict) or depth <= 0 or chance.random() < 0.1:
        return some_value(chance, 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "$ref" in schema:
        target = root["$defs"].get(schema["$ref"].rpartition("/")[2], True)
        return fitting_value(chance, target, root, depth - 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema and chance.random() < 0.7:
            return fitting_value(chance, chance.choice(schema[word]), root, depth - 1)
    kind = schema.get("type")
    kind = chance.choice(kind) if isinstance(kind, list) else kind
    if kind is None:
        kind = "object" if schema.keys() & _OF_OBJECTS else chance.choice(TYPES)
        kind = "array" if schema.keys() & _OF_ARRAYS else kind
    if kind == "object":
        properties = schema.get("properties", {})
        names = {*schema.get("required", ()), *(n for n in NAMES if chance.random() < 0.4)}
        return {
            name: fitting_value(
                chance,
                properties.get(name, schema.get("additionalProperties", True)),
                root,
                depth - 1,
            )
            for name in sorted(names)
        }
    if kind == "array":
        prefix = schema.get("prefixItems", [])
        rest = schema.get("items", schema.get("contains", True))
        return [
            fitting_value(chance, prefix[index] if index < len(prefix) else rest, root, depth - 1)
            for index in range(chance.randint(0, 3))
        ]
    fitting = {"null": (None,), "boolean": (True, False), "string": TEXTS}
    return chance.choice(fitting.get(kind, NUMBERS))


_OF_OBJECTS = {"properties", "required", "additionalProperties", "patternProperties"}
_OF_ARRAYS = {"items", "prefixItems", "contains", "minItems", "unevaluatedItems"}


def _some_words(chance: random.Random, depth: int) -> dict[str, Any]:
    def schema() -> Any:
        return some_schema(chance, depth)

    def schemas() -> list[Any]:
        return [schema() for _ in range(chance.randint(1, 3))]

    def named() -> dict[str, Any]:
        return {name: schema() for name in chance.sample(NAMES, chance.randint(1, 3))}

    def small() -> int:
        return chance.randint(0, 3)

    makers: list[Any] = [
        lambda: {"type": chance.choice(TYPES)},
        lambda: {"type": chance.sample(TYPES, 2)},
        lambda: {"type": "object", "properties": named()},
        lambda: {"properties": named(), "additionalProperties": schema()},
        lambda: {"properties": named(), "required": chance.sample(NAMES, 1)},
        lambda: {"patternProperties": {chance.choice(PATTERNS): schema()}},
        lambda: {"required": chance.sample(NAMES, chance.randint(1, 2))},
        lambda: {"dependentRequired": {chance.choice(NAMES): [chance.choice(NAMES)]}},
        lambda: {"dependentSchemas": {chance.choice(NAMES): schema()}},
        lambda: {"propertyNames": schema()},
        lambda: {"unevaluatedProperties": schema()},
        lambda: {"minProperties": small()},
        lambda: {"maxProperties": small()},
        lambda: {"items": schema()},
        lambda: {"prefixItems": schemas(), "items": schema()},
        lambda: {"prefixItems": schemas()},
        lambda: {"unevaluatedItems": schema(), "prefixItems": schemas()},
        lambda: {"contains": schema()},
        lambda: {"contains": schema(), "minContains": small(), "maxContains": small()},
        lambda: {"minItems": small()},
        lambda: {"maxItems": small()},
        lambda: {"uniqueItems": chance.random() < 0.7},
        lambda: {"enum": chance.sample(SCALARS, chance.randint(1, 4))},
        lambda: {"const": some_value(chance, 1)},
        lambda: {chance.choice(["minimum", "exclusiveMinimum"]): chance.choice(NUMBERS)},
        lambda: {chance.choice(["maximum", "exclusiveMaximum"]): chance.choice(NUMBERS)},
        lambda: {"multipleOf": chance.choice([1, 2, 3, 6, 0.5])},
        lambda: {"minLength": small()},
        lambda: {"maxLength": small()},
        lambda: {"pattern": chance.choice(PATTERNS)},
        lambda: {"format": chance.choice(["date", "email"])},
        lambda: {"anyOf": schemas()},
        lambda: {"oneOf": schemas()},
        lambda: {"oneOf": [_tagged(chance, tag, schema) for tag in chance.sample(NAMES, 2)]},
        lambda: {"allOf": schemas()},
        lambda: {"not": schema()},
        lambda: {"if": schema(), "then": schema(), "else": schema()},
        lambda: {"$ref": f"#/$defs/{chance.choice(DEFINED)}"},
        lambda: {"properties": {chance.choice(NAMES): {"$ref": "#/$defs/A"}}},
        lambda: {"description": chance.choice(TEXTS)},
    ]
    words: dict[str, Any] = chance.choice(makers)()
    return words


def _tagged(chance: random.Random, tag: str, schema: Any) -> dict[str, Any]:
    properties = {"c": {"const": tag}, "a": schema()}
    return {"type": "object", "properties": properties, "required": ["c"]}


def _change(chance: random.Random, schema: Any, depth: int) -> Any:
    """Another schema in the place of one somewhere in it, or words added, taken, altered."""
    if not isinstance(schema, dict) or not schema:
        return some_schema(chance, 2)
    word = chance.choice(list(schema))
    value = schema[word]
    if depth > 0 and chance.random() < 0.6 and isinstance(value, dict) and value:
        if word in ("properties", "patternProperties", "dependentSchemas", "$defs"):
            name = chance.choice(list(value))
            return {**schema, word: {**value, name: _change(chance, value[name], depth - 1)}}
        if word not in ("const", "dependentRequired"):
            return {**schema, word: _change(chance, value, depth - 1)}
    if word in ("anyOf", "oneOf", "allOf", "prefixItems") and chance.random() < 0.8:
        return {**schema, word: _change_list(chance, value, depth)}
    if word == "$defs" or chance.random() < 0.35:
        return {**schema, **_some_words(chance, 2)}
    if chance.random() < 0.5:
        return {each: schema[each] for each in schema if each != word}
    if word in ("enum", "type") and isinstance(value, list) and len(value) > 1:
        return {**schema, word: value[1:]}
    if isinstance(value, int) and not isinstance(value, bool) and word != "const":
        return {**schema, word: max(value + chance.choice([-1, 1]), 1)}
    return {**schema, **_some_words(chance, 2)}


def _change_list(chance: random.Random, schemas: list[Any], depth: int) -> list[Any]:
    kind = chance.random()
    index = chance.randrange(len(schemas))
    if kind < 0.25:
        return [*schemas, some_schema(chance, 1)]
    if kind < 0.4 and len(schemas) > 1:
        return schemas[:index] + schemas[index + 1 :]
    if kind < 0.55:
        return chance.sample(schemas, len(schemas))
    return [
        _change(chance, each, depth - 1) if place == index else each
        for place, each in enumerate(schemas)
    ]
