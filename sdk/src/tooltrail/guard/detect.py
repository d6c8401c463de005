"""Detects which kind of schema an object is: JSON Schema, or a Python type.

Owns detection only; `jsonschema` and `models` compile schemas.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, is_typeddict

from pydantic import BaseModel, TypeAdapter

from tooltrail.guard.nodes import VOCABULARY

SchemaType = Literal["json-schema", "model"]

# Every keyword that constrains a value. Keywords that only describe it (`title`, `$defs`, `$id`,
# `default`) do not make a mapping a schema.
_KEYWORDS: Final = frozenset(["$schema"]).union(*VOCABULARY.values()) - {"default"}
_CACHE_SIZE: Final = 512


@dataclass(frozen=True, slots=True)
class DetectedSchema:
    """A schema and its kind: `json-schema` or `model`."""

    type: SchemaType
    schema: Any


_detected: OrderedDict[int, DetectedSchema] = OrderedDict()


def is_json_schema(schema: object) -> bool:
    """Whether this is a mapping with at least one JSON Schema keyword."""
    return isinstance(schema, Mapping) and not _KEYWORDS.isdisjoint(schema)


def is_model_schema(schema: object) -> bool:
    """Whether this is a pydantic model, a `TypeAdapter`, a dataclass or a `TypedDict`."""
    if isinstance(schema, TypeAdapter):
        return True
    return isinstance(schema, type) and (
        issubclass(schema, BaseModel) or dataclasses.is_dataclass(schema) or is_typeddict(schema)
    )


def detect_schema(schema: Any) -> DetectedSchema:
    """Detect the kind of a schema. The result is cached by the object's identity.

    Raises TypeError if the object is not a schema.
    """
    known = _detected.get(id(schema))
    if known is not None and known.schema is schema:
        return known
    if is_model_schema(schema):
        detected = DetectedSchema("model", schema)
    elif is_json_schema(schema):
        detected = DetectedSchema("json-schema", schema)
    elif isinstance(schema, Mapping | list | tuple | type):
        raise TypeError(
            "Cannot detect schema type: schema does not match JSON Schema, a pydantic model, "
            "a TypeAdapter, a dataclass or a TypedDict"
        )
    else:
        raise TypeError("Cannot detect schema type: schema must be a non-null object")
    _detected[id(schema)] = detected
    while len(_detected) > _CACHE_SIZE:
        _detected.popitem(last=False)
    return detected
