"""A tool of `/mcp`: an operation of the read API with a budget of tokens and an output schema."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from typing import Any, Final, cast

import msgspec
from pydantic import Field, ValidationError

from audit.mcp import answers
from audit.mcp.caller import McpRequest
from audit.work.mcp_uses import actor_of_caller
from config.http.problems import ProblemError
from tenants.actions import record_view
from tenants.api_reads import Answer, Params
from tenants.scope import tenant_scope

_WITHHELD: Final = "Payloads and texts that quote them are withheld: you may not see them."
_SEARCHED: Final = "The search ended early, at searched_until. next_cursor continues it."
_DIGITS_MAX: Final = 1_000
_LEFT_OUT: Final = ("title", "examples", "example", "deprecated")
"""Of schemas: agents pay for each word."""


class ToolParams(Params):
    """What every tool can be asked."""

    max_tokens: int = Field(4_000, ge=500, le=25_000)
    """Budget of the answer. What does not fit is left out, and the answer says so."""


class RowsParams(ToolParams):
    """What a tool with a list of rows can be asked. It has fewer rows than the API's list."""

    limit: int = Field(20, ge=1, le=200)
    """Maximum number of rows."""


@dataclass(frozen=True)
class Tool[P: ToolParams]:
    """A tool. `run` answers with the members of `answer`, in the scope of the caller's tenant."""

    name: str
    title: str
    description: str
    params: type[P]
    answer: type[Answer]
    run: Callable[[McpRequest, P], dict[str, Any]]
    reads: Callable[[P], str] = lambda params: ""
    """What of payloads is read, where each read is on record by itself, not each tool."""

    @cached_property
    def described(self) -> dict[str, Any]:
        """The tool as `tools/list` names it."""
        inputs = _lean(self.params.model_json_schema(by_alias=True))
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": inputs | {"additionalProperties": False},
            "outputSchema": answers.schema_of(self.data_schema),
            "annotations": {
                "title": self.title,
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }

    @cached_property
    def data_schema(self) -> dict[str, Any]:
        """The schema of what is under `untrusted`: no member is null, those are left out."""
        described = self.answer.model_json_schema(by_alias=True, mode="serialization")
        schema: dict[str, Any] = _lean(described)
        for model in (schema, *schema.get("$defs", {}).values()):
            if "properties" in model:
                of = model["properties"]
                model["required"] = [
                    one for one in model.get("required", ()) if not _is_null(of[one])
                ]
        members = schema["properties"]
        for name in ("next", getattr(self.answer, "OLD_NAME", "")):
            members.pop(name, None)
        schema["required"] = [name for name in schema["required"] if name in members]
        return schema

    def call(self, request: McpRequest, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run the tool: the result of `tools/call`. Bad arguments are an answer, too."""
        try:
            params = read_arguments(self.params, arguments)
            with tenant_scope(request.auth.tenant_id):
                fitted, next_cursor = self._fitted(request, params)
        except (ProblemError, answers.TooSmallError) as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        answer = answers.envelope(fitted, next_cursor)
        parts = answers.texts(answer, token_hex(8))
        return {
            "content": [{"type": "text", "text": part} for part in parts],
            "structuredContent": answer,
            "isError": False,
        }

    def _fitted(self, request: McpRequest, params: P) -> tuple[answers.Fitted, str | None]:
        last: dict[str, Any] = {}

        def read(limit: int | None = None) -> dict[str, Any]:
            wanted = params if limit is None else params.model_copy(update={"limit": limit})
            last.update(self.run(request, wanted))
            members = {name: value for name, value in last.items() if name != "next"}
            return cast(dict[str, Any], self._data(members))

        if "items" in self.data_schema["properties"]:
            fitted = answers.fit_page(read, vars(params)["limit"], params.max_tokens)
        else:
            fitted = answers.fit(read(), params.max_tokens)
        if last.get("withheld") is True:
            fitted.notes.append(_WITHHELD)
        if last.get("searched_until") is not None:
            fitted.notes.append(_SEARCHED)
        if last.get("withheld") is False:
            record_payload_read(request, f"{self.name} {self.reads(params)}".strip())
        return fitted, last.get("next")

    def _data(self, members: dict[str, Any]) -> Any:
        """Members of the answer as JSON values, without those that have none."""
        value = json.loads(
            msgspec.json.encode(members), parse_int=_read_int, parse_float=_read_float
        )
        return answers.shown(_without_null(value, self.data_schema, self.data_schema))


def read_arguments[P: Params](params: type[P], arguments: Mapping[str, Any]) -> P:
    """The arguments of a tool or a prompt, checked. Raises ProblemError."""
    known = {field.alias or name for name, field in params.model_fields.items()}
    if arguments.keys() - known:
        offered = ", ".join(sorted(known))
        raise ProblemError("parameter", f"Unknown argument. Available: {offered}.")
    try:
        return params.model_validate(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ProblemError("parameter", f"{where}: {first['msg']}.") from error


def record_payload_read(request: McpRequest, what: str) -> None:
    """Record that the caller was given payloads: at most once a minute for each subject.

    Needs the tenant's scope.
    """
    tenant_id = request.auth.tenant_id
    actor = actor_of_caller(tenant_id, request.auth.caller)
    record_view(tenant_id, actor, "payload.read", f"/mcp {what}")


def _is_null(schema: Mapping[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def _without_null(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A value without the members that its schema names and that are null."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if others := [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]:
        return _without_null(value, others[0], root) if len(others) == 1 else value
    if isinstance(value, dict) and "properties" in schema:
        members = schema["properties"]
        return {
            name: _without_null(member, members.get(name, {}), root)
            for name, member in value.items()
            if member is not None or name not in members
        }
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_without_null(item, schema["items"], root) for item in value]
    return value


def _lean(schema: Any, *, is_names: bool = False) -> Any:
    """A schema without what an agent does not need. `is_names`: it has members by their names."""
    match schema:
        case dict():
            return {
                name: _lean(member, is_names=not is_names and name in ("properties", "$defs"))
                for name, member in schema.items()
                if is_names or name not in _LEFT_OUT
            }
        case list():
            return [_lean(item) for item in schema]
        case _:
            return schema


def _read_int(text: str) -> int | str:
    return int(text) if len(text) <= _DIGITS_MAX else text


def _read_float(text: str) -> float | str:
    return value if math.isfinite(value := float(text)) else text
