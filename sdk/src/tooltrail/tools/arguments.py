"""What a tool accepts: its input schema, and arguments validated against it.

Owns the rules for arguments, for both kinds of schema: JSON Schema, and Python types that
pydantic can read. `tooltrail.guard` validates values against JSON Schema. Neither kind converts
types. Both fill in defaults, and reject undeclared arguments unless the schema has
`additionalProperties`.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Protocol, cast, is_typeddict
from urllib.parse import unquote

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from tooltrail.errors import ValidationDetail, ValidationException
from tooltrail.guard.jsonschema import compile_schema
from tooltrail.guard.reading import copy_schema

# Keywords with which a schema can declare members outside of its own `properties`.
_COMPOSING = {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}

_PATH_PART = re.compile(r"\.([^.\[]*)|\[(\d+)\]", re.ASCII)


class Arguments(Protocol):
    """A compiled input schema that validates arguments."""

    json_schema: dict[str, Any]

    def validate(self, args: Any) -> Any:
        """Return the arguments with defaults filled in.

        Raises ValidationException, which lists every violation.
        """

    def dump(self, validated: Any) -> Any:
        """Convert validated arguments to plain JSON values, the form that events have."""


def read_input_schema(schema: Any, *, is_closed: bool = True) -> Arguments:
    """Compile an input schema: a JSON Schema of type object, or a type that pydantic can read.

    Without `is_closed`, undeclared arguments are accepted unless the schema itself rejects them.

    Such types are models, dataclasses, `TypedDict`s and `TypeAdapter`s of these.
    Raises ValueError for anything else, and for a schema that is malformed, refers to remote
    documents or uses patterns that have no linear-time form.
    """
    if isinstance(schema, Mapping):
        return JsonSchemaArguments(schema, is_closed=is_closed)
    if isinstance(schema, TypeAdapter) or (
        isinstance(schema, type)
        and (
            issubclass(schema, BaseModel)
            or dataclasses.is_dataclass(schema)
            or is_typeddict(schema)
        )
    ):
        return TypedArguments(schema, is_closed=is_closed)
    raise ValueError("an input schema must be a JSON Schema of type object or a pydantic model")


class JsonSchemaArguments:
    """Arguments described by JSON Schema. They stay plain values.

    The guard compiles the schema, so that a schema means the same for input and output. The
    `type` of a violation is the guard's violation code.
    """

    def __init__(self, schema: Mapping[str, Any], *, is_closed: bool = True) -> None:
        if schema.get("type") != "object":
            raise ValueError("the input schema must be of type object")
        self.json_schema: dict[str, Any] = copy_schema(schema)  # raises if it is too large
        self._has_defaults = '"default"' in json.dumps(self.json_schema)
        closed = _closed(self.json_schema) if is_closed else self.json_schema
        self._compiled = compile_schema(closed)

    def validate(self, args: Any) -> Any:
        """See `Arguments`. If no default is missing, the same object is returned."""
        if violations := self._compiled.violations(args):
            raise ValidationException(
                [
                    ValidationDetail(
                        violation.message,
                        _split_path(violation.path),
                        violation.code,
                        {"expected": violation.expected, "received": violation.received},
                    )
                    for violation in violations
                ]
            )
        if not self._has_defaults:
            return args
        try:
            return _with_defaults(self.json_schema, args, self.json_schema, set())
        except RecursionError:
            detail = ValidationDetail("the arguments are nested too deeply")
            raise ValidationException([detail]) from None

    def dump(self, validated: Any) -> Any:
        """See `Arguments`."""
        return validated


class TypedArguments:
    """Arguments described by a Python type. Validated arguments are an instance of it.

    They are read as JSON, in strict mode: "10" is not a number, but a UUID may be text. A
    model's own `strict` setting is respected.
    """

    def __init__(self, model: Any, *, is_closed: bool = True) -> None:
        try:
            self._adapter: TypeAdapter[Any] = (
                model if isinstance(model, TypeAdapter) else TypeAdapter(model)
            )
            self.json_schema = self._adapter.json_schema()
        except (PydanticUserError, PydanticSchemaGenerationError, NameError) as error:
            raise ValueError(f"the input schema cannot be used: {error}") from error
        root = _resolved(self.json_schema, self.json_schema)
        if root.get("type") != "object":
            raise ValueError("the input schema must be of type object")
        config = getattr(model, "model_config", None) or {}
        self._strict = None if "strict" in config else True
        is_open = root.get("additionalProperties", False) is not False
        self._declared = None if is_open or not is_closed else _member_names(model, root)

    def validate(self, args: Any) -> Any:
        details: list[ValidationDetail] = []
        validated: Any = None
        try:
            validated = self._adapter.validate_json(to_json(args), strict=self._strict)
        except ValidationError as error:
            details = [
                ValidationDetail(item["msg"], item["loc"], item["type"], item.get("ctx", {}))
                for item in error.errors(include_url=False, include_input=False)
            ]
        except (PydanticSerializationError, UnicodeError) as error:  # not JSON values at all
            details = [ValidationDetail(str(error))]
        if self._declared is not None and isinstance(args, Mapping):
            reported = {detail.path for detail in details}
            details += [
                ValidationDetail(f"{name!r} is not a declared argument", (name,), "extra_forbidden")
                for name in args
                if name not in self._declared and (name,) not in reported
            ]
        if details:
            raise ValidationException(details)
        return validated

    def dump(self, validated: Any) -> Any:
        return self._adapter.dump_python(validated, mode="json", by_alias=True)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with undeclared arguments rejected, unless the schema itself decides this."""
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    composed = _COMPOSING & schema.keys()
    return {**schema, "unevaluatedProperties" if composed else "additionalProperties": False}


def _resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that a local `$ref` points to, else the schema itself; {} if there is none."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(ref := schema.get("$ref"), str):
        if not ref.startswith("#") or ref in seen:
            return {}
        seen.add(ref)
        schema = root
        for part in unquote(ref[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(key) if isinstance(schema, Mapping) else None
    return cast("dict[str, Any]", schema) if isinstance(schema, Mapping) else {}


def _with_defaults(schema: Any, value: Any, root: Mapping[str, Any], applied: set[int]) -> Any:
    """The value with absent members set to the `default` in their schema; itself if none is absent.

    If an object is absent, the defaults of its members are not used, as in the ADK. `applied`
    are the schemas already applied to this value: references may lead to one many times.
    """
    if not isinstance(schema, Mapping) or id(schema) in applied:
        return value
    applied.add(id(schema))
    if "$ref" in schema:
        value = _with_defaults(_resolved(schema, root), value, root, applied)
    for branch in schema.get("allOf", ()):
        value = _with_defaults(branch, value, root, applied)
    if isinstance(value, dict):
        for name, member in schema.get("properties", {}).items():
            if name in value:
                filled = _with_defaults(member, value[name], root, set())
                if filled is not value[name]:
                    value = {**value, name: filled}
            elif "default" in (declared := _default_of(member, root)):
                value = {**value, name: deepcopy(declared["default"])}
    elif isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        filled = [_with_defaults(items, element, root, set()) for element in value]
        if any(new is not old for new, old in zip(filled, value, strict=True)):
            return filled
    return value


def _split_path(path: str) -> tuple[str | int, ...]:
    """The parts of a violation's path, such as `$.a[0]`; a name with dots is split."""
    return tuple(
        int(index) if index else name for name, index in _PATH_PART.findall(path.removeprefix("$"))
    )


def _default_of(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that has a member's default: the member's own, else the referenced one."""
    if isinstance(schema, Mapping) and "default" in schema:
        return schema
    return _resolved(schema, root)


def _member_names(model: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """All names of the declared arguments; pydantic's schema shows only one alias of each."""
    names = set(root.get("properties", ()))
    if isinstance(model, type) and issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            names.add(name)
            alias = field.validation_alias
            for choice in getattr(alias, "choices", [alias]):
                names.add(str(getattr(choice, "path", [choice])[0]))
    return frozenset(names)
