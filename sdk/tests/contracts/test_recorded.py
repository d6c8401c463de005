"""Recorded rows of the AI Core's models."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from tooltrail.contracts import (
    ToolContext,
    ToolError,
    ToolErrorDetail,
    ToolErrorMeta,
    ToolErrorType,
    ToolOutput,
    ToolResult,
    ToolResultMeta,
)

from sdk.tests.support.vectors import cases


class SearchInput(BaseModel):
    query: str


class SearchOutput(BaseModel):
    answer: str


MODELS: dict[str, Any] = {
    "ToolContext": ToolContext,
    "ToolResult": ToolResult,
    "ToolResult[SearchInput,SearchOutput]": ToolResult[SearchInput, SearchOutput],
    "ToolResultMeta": ToolResultMeta,
    "ToolError": ToolError,
    "ToolError[SearchInput]": ToolError[SearchInput],
    "ToolErrorDetail": ToolErrorDetail,
    "ToolErrorMeta": ToolErrorMeta,
    "ToolOutput[SearchInput,SearchOutput]": ToolOutput[SearchInput, SearchOutput],
}
CONTEXT = {
    "tenant_id": "5aa31da6-9278-4da0-9f1a-61b8d3edc5cc",
    "trace_id": "trace-123",
    "invocation_id": "0f4e6712-6d04-4514-b6cb-943b0667d45c",
    "now_iso": "2024-05-03T12:34:56+00:00",
    "run_id": "graph_run_cfe213",
}


def contract_exempt(row: dict[str, Any]) -> str | None:
    if "documentation-differs" in row["tags"] and "source_counts" in row["payload"]:
        return "decision 14: source_counts are ≥ 0"
    return None


@cases("contracts_models.jsonl", "contract.validate", exempt=contract_exempt)
def test_recorded_validation_rows(row: dict[str, Any]) -> None:
    adapter = TypeAdapter(MODELS[row["model"]])
    text = row["payload_json"] if "payload_json" in row else json.dumps(row["payload"])
    if not row["valid"]:
        with pytest.raises(ValidationError) as caught:
            adapter.validate_json(text)
        # Decision 17: an instant no calendar has is a validation error as well.
        if "raises" not in row:
            errors = caught.value.errors()
            for error, recorded in zip(errors, row["errors"], strict=True):
                assert {**error, "loc": list(error["loc"])}.items() >= recorded.items()
        return
    model = adapter.validate_json(text)
    assert type(model).__name__.partition("[")[0] == row["kind"]
    dumped = adapter.dump_json(model)
    if "normalized" in row:
        assert json.loads(dumped) == row["normalized"]
        assert (adapter.validate_json(dumped) == model) is row["roundtrip_equal"]
    else:
        # The reference loses what an envelope without parameters holds; here it stays.
        assert json.loads(dumped)["input"] == row["payload"]["input"]


def refusal(action: Any) -> dict[str, Any]:
    with pytest.raises((ValidationError, TypeError)) as caught:
        action()
    if not isinstance(caught.value, ValidationError):
        return {"raises": "TypeError"}
    errors = [
        {"loc": list(error["loc"]), "type": error["type"], "msg": error["msg"]}
        for error in caught.value.errors()
    ]
    return {"raises": "ValidationError", "errors": errors}


def at(moment: object) -> ToolContext:
    return ToolContext.model_validate({**CONTEXT, "now_iso": moment})


def mutated() -> dict[str, Any]:
    context = ToolContext.model_validate({**CONTEXT, "auth": {"a": 1}})
    assert context.auth is not None
    context.auth["b"] = 2
    return {"auth": context.auth}


SUMMER = timezone(timedelta(hours=2))
EXPECTED: dict[str, Any] = {
    "assigning a field of a frozen instance": lambda: refusal(
        lambda: setattr(at(CONTEXT["now_iso"]), "trace_id", "x")
    ),
    "mutating a dict held by a frozen instance": mutated,
    "hash of a context with a dict field": lambda: refusal(
        lambda: hash(ToolContext.model_validate({**CONTEXT, "auth": {}}))
    ),
    "equality across time zones": lambda: {
        "equal": at("2024-05-03T12:00:00+02:00") == at("2024-05-03T10:00:00Z")
    },
    "naive datetime object": lambda: refusal(lambda: at(datetime(2024, 5, 3))),  # noqa: DTZ001  # just that is refused
    "aware datetime object": lambda: {
        "iso": at(datetime(2024, 5, 4, 8, 45, tzinfo=SUMMER)).now_iso.isoformat()
    },
    "error type values": lambda: [kind.value for kind in ToolErrorType],
    "error type is a str": lambda: {
        "is_str": isinstance(ToolErrorType.FATAL, str),
        "str": str(ToolErrorType.FATAL),
        "equal_to_plain": ToolErrorType.FATAL == "FATAL",
    },
    "error detail dump keeps the enum value equal to its string": lambda: {
        "type": ToolErrorDetail(type=ToolErrorType.FATAL, message="m").model_dump()["type"]
        == "FATAL"
    },
}


@cases("contracts_models.jsonl", "contract.behaviour")
def test_recorded_behaviour_rows(row: dict[str, Any]) -> None:
    outcome = row["outcome"]
    if isinstance(outcome, dict):
        outcome = {key: value for key, value in outcome.items() if key != "message"}
    assert EXPECTED[row["behaviour"]]() == outcome


def without_texts(schema: Any) -> Any:
    """A schema without its descriptions and, by decision 15, without the examples."""
    if isinstance(schema, dict):
        return {
            key: without_texts(member)
            for key, member in schema.items()
            if key not in ("description", "examples")
        }
    if isinstance(schema, list):
        return [without_texts(member) for member in schema]
    return schema


@cases("contracts_models.jsonl", "contract.json_schema")
def test_recorded_json_schema_rows(row: dict[str, Any]) -> None:
    assert without_texts(MODELS[row["model"]].model_json_schema()) == row["schema"]


@pytest.mark.parametrize(
    "name", ["ToolContext", "ToolResult", "ToolResultMeta", "ToolError", "ToolErrorMeta"]
)
def test_examples_in_exported_schemas_are_valid(name: str) -> None:
    examples = MODELS[name].model_json_schema()["examples"]
    assert examples
    for example in examples:
        MODELS[name].model_validate(example)


def test_schema_of_a_parametrized_result_has_no_examples_of_other_types() -> None:
    schema = ToolResult[SearchInput, SearchOutput].model_json_schema()
    assert "examples" not in schema
    assert schema["$defs"]["ToolResultMeta"]["examples"]


def test_timestamps_are_converted_to_utc() -> None:
    assert at("2024-05-03T12:00:00+02:00").now_iso.tzinfo is UTC
