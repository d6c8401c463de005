"""Validation of a tool's contract: its members, their limits, and usable JSON Schemas.

The same rules apply to executors (`tools_registry.api`), people (`tools_registry.admin`, drafts)
and imports.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal

import jsonschema_rs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from tooltrail.events import NAME_MAX_LENGTH
from tooltrail.guard import SchemaError
from tooltrail.guard.jsonschema import CompiledSchema, compile_schema
from tooltrail.tools.digest import tool_digest

DESCRIPTION_MAX_LENGTH = 20_000  # characters; a model reads it with every request
SCHEMA_MAX_BYTES = 256 * 1024  # of JSON text; the largest seen in use have some 50 KiB
META_MAX_BYTES = 64 * 1024
DEPTH_MAX = 64  # as for events
SCHEMAS: Final = ("input_schema", "output_schema")


def check_text(text: str) -> str:
    """Text the database can hold. Raises ValueError for U+0000 and lone surrogates."""
    if "\0" in text:
        raise ValueError("must not contain U+0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain a lone surrogate") from None
    return text


def check_name(name: str) -> str:
    """A tool's name. Raises ValueError for control characters and what `check_text` refuses."""
    if not name.isprintable():
        raise ValueError("must consist of printable characters")
    return check_text(name)


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema if it works and is complete. Raises ValueError: what is wrong where.

    It rejects unknown dialects, wrong keywords, patterns that do not compile, and references to
    anything outside: nothing is ever fetched. It accepts what guards can use although it is not
    correct: JavaScript's patterns, a list of items without a dialect, an empty `allOf`.
    """
    _check_document(schema, SCHEMA_MAX_BYTES)
    try:
        jsonschema_rs.validator_for(schema, retriever=_refuse_to_fetch)
    except jsonschema_rs.ValidationError as error:
        if "$schema" not in schema and _is_judgeable(schema):
            return schema
        where = "".join(f"/{part}" for part in error.instance_path)
        raise ValueError(
            f"is not a usable JSON Schema{where and f' at {where}'}: {error.message[:300]}"
        ) from None
    except ValueError as error:  # lone surrogates
        raise ValueError(f"is not a usable JSON Schema: {error}") from None
    return schema


def _is_judgeable(schema: dict[str, Any]) -> bool:
    try:
        compile_for_judging(schema)
    except ValueError:
        return False
    return True


def compile_for_judging(schema: Mapping[str, Any]) -> CompiledSchema:
    """A schema as guards, replays and the check on arrival judge by it.

    Raises ValueError for one they cannot: it refers to itself without end, or holds a pattern
    that does not run in linear time.
    """
    try:
        return compile_schema(schema)
    except SchemaError as error:
        message = f"cannot be used for validation: {error}"
        raise ValueError(message) from None


def compile_for_arrival(schema: Mapping[str, Any] | None) -> CompiledSchema:
    """An output schema by which the server can judge while it stores: each value in short time.

    Raises ValueError saying why it cannot, behind "its outputs".
    """
    if schema is None:
        raise ValueError("have no schema")
    try:
        compiled = compile_for_judging(schema)
    except ValueError as error:
        raise ValueError(f"have a schema that {error}") from None
    if compiled.native is None:
        raise ValueError("have a schema that is too complex for validation on arrival")
    return compiled


def check_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """A tool's labels: any JSON object within the limits, of texts that can be held.

    Raises ValueError.
    """
    _check_document(meta, META_MAX_BYTES)
    waiting: list[Any] = [meta]
    while waiting:
        match waiting.pop():
            case str() as text:
                check_text(text)
            case dict() as members:
                waiting += [*members, *members.values()]
            case list() as items:
                waiting += items
    return meta


def _check_document(document: dict[str, Any], limit: int) -> None:
    if not _is_shallow(document):
        raise ValueError(f"is nested deeper than {DEPTH_MAX} levels")
    try:
        size = len(json.dumps(document, allow_nan=False))
    except ValueError:
        raise ValueError("contains a number that JSON cannot represent") from None
    if size > limit:
        raise ValueError(f"has {size:,} bytes of JSON, more than {limit:,}")


def _is_shallow(document: Any) -> bool:
    # Level by level, without recursion, because the depth is untrusted.
    level: list[Any] = [document]
    for _ in range(DEPTH_MAX):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        if not below:
            return True
        level = below
    return not any(isinstance(value, dict | list) for value in level)


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"external references are not supported: {uri}")


type _Name = Annotated[
    str, Field(min_length=1, max_length=NAME_MAX_LENGTH), AfterValidator(check_name)
]
_NAME: Final[TypeAdapter[str]] = TypeAdapter(_Name, config=ConfigDict(strict=True))


def name_in(entry: Any) -> str | None:
    """The name a contract says it has, if a tool may be called so."""
    try:
        return _NAME.validate_python(entry.get("name") if isinstance(entry, dict) else None)
    except ValidationError:
        return None


class ToolContract(BaseModel):
    """Everything a version of a tool is made of."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    name: _Name
    description: Annotated[
        str, Field(max_length=DESCRIPTION_MAX_LENGTH), AfterValidator(check_text)
    ]
    input_schema: Annotated[dict[str, Any], AfterValidator(check_schema)]
    output_schema: Annotated[dict[str, Any], AfterValidator(check_schema)] | None = None
    trusted: bool = False
    ephemeral: bool = False
    on_collision: Literal["throw", "replace", "keep"] = "throw"
    meta: Annotated[dict[str, Any], AfterValidator(check_meta)] = Field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The name of this contract, the same wherever it is worked out."""
        return tool_digest(**self.model_dump(exclude={"meta"}))


def judging_problems(
    contract: ToolContract, *, in_use: Iterable[Mapping[str, Any] | None] = ()
) -> dict[str, str]:
    """Why nothing can be judged by a contract's schemas, by member; {} if it can.

    Schemas that are already `in_use` are accepted: generated ones use look-ahead, and the other
    members of their contracts must remain editable.
    """
    known = list(in_use)
    problems: dict[str, str] = {}
    for member in SCHEMAS:
        schema = getattr(contract, member)
        if schema is None or schema in known:
            continue
        try:
            compile_for_judging(schema)
        except ValueError as error:
            problems[member] = str(error)
    return problems


def explain(error: ValidationError) -> str:
    """What is wrong with a contract, in one line, the first three problems."""
    problems = []
    for problem in error.errors(include_url=False, include_input=False)[:3]:
        where = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        problems.append(f"{where}: {message}" if where else message)
    return "; ".join(problems)
