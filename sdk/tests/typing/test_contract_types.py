"""Code written for the AI Core contracts type-checks under mypy strict."""

from datetime import UTC, datetime
from typing import assert_type
from uuid import UUID

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from tooltrail.contracts import (
    ToolContext,
    ToolError,
    ToolErrorType,
    ToolOutput,
    ToolResult,
    ToolResultMeta,
    returns_tool_output,
)


class Question(BaseModel):
    query: str


class Answer(BaseModel):
    answer: str


@returns_tool_output
def answer(question: Question) -> Answer:
    if not question.query:
        raise TimeoutError("nobody answered")
    return Answer(answer=question.query.upper())


def read(output: ToolOutput[Question, Answer]) -> str:
    """The two kinds are told apart by their status, for the type checker as well."""
    if output.status == "ok":
        assert_type(output, ToolResult[Question, Answer])
        return output.data.answer
    assert_type(output.error.type, ToolErrorType)
    return output.error.message


def test_envelope_keeps_the_types_of_its_models() -> None:
    result = ToolResult[Question, Answer](
        input=Question(query="hello"), data=Answer(answer="Hi"), meta=ToolResultMeta(took_ms=42)
    )

    assert_type(result.data, Answer)
    assert read(result) == "Hi"


def test_decorated_function_returns_either_envelope() -> None:
    output = answer(Question(query="hi"))

    assert_type(output, ToolResult[Question, Answer] | ToolError[Question])
    assert read(output) == "HI"
    assert read(answer(Question(query=""))) == "nobody answered"


def test_json_is_parsed_as_either_envelope() -> None:
    adapter: TypeAdapter[ToolResult[Question, Answer] | ToolError[Question]] = TypeAdapter(
        ToolOutput[Question, Answer]
    )

    assert read(adapter.validate_json(answer(Question(query="hi")).model_dump_json())) == "HI"


def test_contexts_are_frozen_for_the_type_checker() -> None:
    context = ToolContext(
        tenant_id=UUID(int=1),
        trace_id="trace-123",
        invocation_id=UUID(int=2),
        now_iso=datetime(2026, 1, 1, tzinfo=UTC),
        run_id="graph_run_1",
    )

    with pytest.raises(ValidationError, match="frozen"):
        context.case_id = "other"  # type: ignore[misc]  # mypy must refuse it
