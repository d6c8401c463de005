"""Python types as schemas: pydantic models, `TypeAdapter`s, dataclasses, `TypedDict`s.

Owns their strict validation and the conversion of pydantic's errors to violations. Coercing and
stripping use the type's JSON Schema, as for any other schema.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, to_json

from tooltrail.guard.format import build_path, build_violation
from tooltrail.guard.jsonschema import CompiledSchema, compile_schema
from tooltrail.guard.jsvalues import js_text, kind_of
from tooltrail.guard.violations import Violation, ViolationCode

_UNION_ERROR: Final = "union_mismatch"
_CODES: Final[dict[str, ViolationCode]] = {
    "missing": "MISSING_REQUIRED",
    "missing_argument": "MISSING_REQUIRED",
    "extra_forbidden": "UNKNOWN_FIELD",
    "unexpected_keyword_argument": "UNKNOWN_FIELD",
    "literal_error": "ENUM_MISMATCH",
    "enum": "ENUM_MISMATCH",
    "string_pattern_mismatch": "PATTERN_MISMATCH",
    "is_instance_of": "WRONG_TYPE",
    "is_subclass_of": "WRONG_TYPE",
    "none_required": "WRONG_TYPE",
    "int_from_float": "WRONG_TYPE",
    "dataclass_exact_type": "WRONG_TYPE",
    "model_attributes_type": "WRONG_TYPE",
    "int_parsing": "WRONG_TYPE",
    "float_parsing": "WRONG_TYPE",
    "bool_parsing": "WRONG_TYPE",
}
"""The violation codes of pydantic's error types. Other types ending in `_type` are WRONG_TYPE,
the rest are CONSTRAINT_VIOLATION."""


class ModelSchema:
    """A Python type compiled to validate values."""

    def __init__(self, schema: Any) -> None:
        self._adapter: TypeAdapter[Any] = (
            schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)
        )
        # Strict, unless the type's own configuration is lax.
        self._strict = None if _is_lax(self._adapter.core_schema) else True

    def violations(self, value: Any) -> list[Violation]:
        """List every violation of `value`; an empty list means that it is valid."""
        try:
            self._adapter.validate_python(value, strict=self._strict)
        except ValidationError:
            return list(self._explained(value))
        return []

    @cached_property
    def json_schema(self) -> CompiledSchema:
        """The type's JSON Schema, for coercing and stripping. Raises if it has none."""
        return compile_schema(_without_null_unions(self._adapter.json_schema()))

    @cached_property
    def _explainer(self) -> SchemaValidator:
        """The same validator, with one error per union instead of one per branch."""
        return SchemaValidator(_with_union_errors(self._adapter.core_schema), _use_prebuilt=False)

    def _explained(self, value: Any) -> Iterator[Violation]:
        try:
            if _is_json(value):
                # JSON has no dates, enums, sets or dataclasses: use the strict rules for JSON.
                text = to_json(value, inf_nan_mode="constants")
                self._explainer.validate_json(text, strict=self._strict)
            else:
                self._explainer.validate_python(value, strict=self._strict)
        except ValidationError as failure:
            for error in failure.errors(include_url=False):
                location = _without_tags(self._adapter.core_schema, error["loc"])
                yield _violation(error, location)


@lru_cache(maxsize=512)
def compile_model(schema: Any) -> ModelSchema:
    """Compile a Python type, or return it from the cache."""
    return ModelSchema(schema)


def _is_lax(schema: Any) -> bool:
    """Whether the outermost configuration has `strict=False`."""
    while isinstance(schema, Mapping):
        if "config" in schema:
            return schema["config"].get("strict") is False
        schema = schema.get("schema")
    return False


def _is_json(value: Any) -> bool:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as members:
                if not all(isinstance(key, str) for key in members):
                    return False
                waiting += members.values()
            case list() as items:
                waiting += items
            case None | bool() | int() | float():
                pass
            case str() as text:
                if not text.isascii() and any("\ud800" <= unit <= "\udfff" for unit in text):
                    return False
            case _:
                return False
    return True


def _with_union_errors(schema: Any) -> Any:
    if isinstance(schema, dict):
        copy = {key: _with_union_errors(value) for key, value in schema.items()}
        if copy.get("type") in ("union", "tagged-union") and "choices" in copy:
            copy.setdefault("custom_error_type", _UNION_ERROR)
            copy.setdefault("custom_error_message", "Value matches none of the allowed types")
        return copy
    if isinstance(schema, list):
        return [_with_union_errors(item) for item in schema]
    if isinstance(schema, tuple) and not hasattr(schema, "_fields"):
        return tuple(_with_union_errors(item) for item in schema)
    return schema


def _without_tags(schema: Any, location: tuple[str | int, ...]) -> list[str | int]:
    """Remove the tags of discriminated unions from an error's location: they are not members."""
    definitions = {
        each["ref"]: each for each in schema.get("definitions", ()) if isinstance(each, dict)
    }
    path: list[str | int] = []
    for at, part in enumerate(location):
        schema = _unwrapped(schema, definitions)
        if schema is None:
            return [*path, *location[at:]]
        if schema["type"] == "tagged-union":
            choices = {str(tag): choice for tag, choice in schema["choices"].items()}
            schema = choices.get(str(part))
            if not isinstance(schema, dict):
                return [*path, part, *location[at + 1 :]]
            continue
        path.append(part)
        schema = _below(schema, part)
    return path


def _unwrapped(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return the schema inside all wrappers that add nothing to a location."""
    for _ in range(100):
        if not isinstance(schema, dict):
            return None
        match schema["type"]:
            case "definition-ref":
                schema = definitions.get(schema["schema_ref"])
            case "json-or-python":
                schema = schema["python_schema"]
            case "lax-or-strict":
                schema = schema["strict_schema"]
            case "model-fields" | "typed-dict" | "dataclass-args" | "tagged-union":
                return schema
            case _ if "schema" in schema:
                schema = schema["schema"]
            case _:
                return schema
    return None


def _below(schema: dict[str, Any], part: str | int) -> Any:
    match schema["type"]:
        case "model-fields" | "typed-dict":
            for name, each in schema["fields"].items():
                if part in (name, each.get("validation_alias")):
                    return each["schema"]
        case "dataclass-args":
            for each in schema["fields"]:
                if part in (each["name"], each.get("validation_alias")):
                    return each["schema"]
        case "dict":
            return schema.get("values_schema")
        case "tuple" if isinstance(part, int):
            items = schema["items_schema"]
            return items[min(part, len(items) - 1)] if items else None
        case "list" | "set" | "frozenset" | "generator":
            return schema.get("items_schema")
    return None


def _violation(error: Any, location: list[str | int]) -> Violation:
    kind: str = error["type"]
    code = _CODES.get(kind) or ("WRONG_TYPE" if kind.endswith("_type") else "CONSTRAINT_VIOLATION")
    path, value = build_path(location), error["input"]
    context = error.get("ctx", {})
    name = str(location[-1]) if location else "$"
    match code:
        case "MISSING_REQUIRED":
            message, received, expected = f'Required field "{name}" is missing', "undefined", name
        case "UNKNOWN_FIELD":
            message = f'Field "{name}" is not allowed by the schema'
            received, expected = name, "not present"
        case "ENUM_MISMATCH":
            message, received, expected = error["msg"], js_text(value), str(context["expected"])
        case "PATTERN_MISMATCH":
            message, received = f"String does not match pattern {context['pattern']}", str(value)
            expected = f"matches /{context['pattern']}/"
        case "WRONG_TYPE":
            expected = kind.removesuffix("_type").removesuffix("_parsing").replace("_", " ")
            expected = _TYPE_NAMES.get(expected, expected)
            message, received = f"Expected type {expected}, got {kind_of(value)}", kind_of(value)
        case _:
            message, received, expected = error["msg"], kind_of(value), error["msg"]
    return build_violation(code, path, message, received, expected)


_TYPE_NAMES: Final = {
    "int": "integer",
    "int from float": "integer",
    "float": "number",
    "bool": "boolean",
    "none required": "null",
    "dict": "object",
    "model": "object",
    "model attributes": "object",
    "dataclass": "object",
    "dataclass exact": "object",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "frozen set": "array",
}


def _without_null_unions(schema: Any) -> Any:
    """Write pydantic's optional, `anyOf: [X, null]`, as X, because coercion ignores unions."""
    if isinstance(schema, list):
        return [_without_null_unions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _without_null_unions(value) for key, value in schema.items()}
    branches = copy.get("anyOf")
    if isinstance(branches, list) and len(branches) == 2 and {"type": "null"} in branches:
        del copy["anyOf"]
        copy["allOf"] = [next(each for each in branches if each != {"type": "null"})]
    return copy
