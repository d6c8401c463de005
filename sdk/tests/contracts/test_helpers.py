"""Contexts and events, exceptions as errors, functions as envelopes."""

import asyncio
import concurrent.futures
import email.message
import inspect
import json
import socket
import urllib.error
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import urllib3
from pydantic import BaseModel, TypeAdapter, ValidationError
from tooltrail.contracts import (
    ToolContext,
    ToolError,
    ToolErrorType,
    ToolOutput,
    ToolResult,
    ToolResultMeta,
    describe_failure,
    returns_tool_output,
    tool_error,
)
from tooltrail.errors import (
    InvalidToolArgs,
    ToolDownstreamError,
    ValidationDetail,
    ValidationException,
)
from tooltrail.events import EVENT

TENANT = UUID("5aa31da6-9278-4da0-9f1a-61b8d3edc5cc")
NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


class Question(BaseModel):
    query: str


class Answer(BaseModel):
    answer: str


# --- context


def test_context_survives_an_event_without_its_secrets() -> None:
    context = ToolContext(
        tenant_id=TENANT,
        trace_id="trace-123",
        invocation_id=UUID(int=7),
        now_iso=NOW,
        run_id="run-1",
        case_id="crm-1",
        timeouts_ms=5,
        auth={"token": "secret"},
    )
    members = context.event_members()
    assert members == {
        "trace_id": "trace-123",
        "invocation_id": UUID(int=7),
        "run_id": "run-1",
        "case_id": "crm-1",
        "timeouts_ms": 5,
    }
    event = EVENT.validate_python(
        members
        | {
            "type": "toolExecutionStart",
            "tool_name": "t",
            "call_id": "c",
            "args": {},
            "started_at": NOW,
        }
    )
    assert event.type == "toolExecutionStart"
    back = ToolContext.from_event(event, TENANT)
    assert back == context.model_copy(update={"auth": None})


def test_turn_id_of_an_adk_event_becomes_the_trace_id() -> None:
    event = EVENT.validate_python(
        {
            "type": "toolExecutionStart",
            "toolName": "t",
            "callId": "c",
            "turnId": "turn-1",
            "args": {},
            "invocationId": UUID(int=7),
            "startedAt": NOW,
            "runId": "r",
        }
    )
    assert event.type == "toolExecutionStart"
    assert ToolContext.from_event(event, TENANT).trace_id == "turn-1"


# --- exceptions


def http_error(status: int, **headers: str) -> urllib.error.HTTPError:
    message = email.message.Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return urllib.error.HTTPError("http://x", status, "reason", message, None)


class ReadTimeout(Exception):  # noqa: N818  # the libraries' name
    """As httpx and requests call it."""


class HTTPStatusError(Exception):
    """As httpx has it: the answer hangs on the exception."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(f"status {status}")
        self.response = SimpleNamespace(status_code=status, headers=headers)


class ClientConnectionError(Exception):
    """As aiohttp calls it."""


def invalid() -> ValidationError:
    try:
        Question.model_validate({"query": "secret", "x": Question.model_validate({})})
    except ValidationError as error:
        return error
    raise AssertionError


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


DETAILS = [ValidationDetail("bad", ("a", 0), "type")]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError("slow"), "TIMEOUT"),
        (ReadTimeout("slow"), "TIMEOUT"),
        (urllib.error.URLError(TimeoutError("slow")), "TIMEOUT"),
        (http_error(408), "TIMEOUT"),
        (http_error(504), "TIMEOUT"),
        (http_error(429), "RATE_LIMIT"),
        (HTTPStatusError(429, {}), "RATE_LIMIT"),
        (http_error(500), "UPSTREAM"),
        (HTTPStatusError(503, {}), "UPSTREAM"),
        (http_error(404), "FATAL"),
        (invalid(), "VALIDATION"),
        (InvalidToolArgs(), "VALIDATION"),
        (ValidationException(DETAILS), "VALIDATION"),
        (json.JSONDecodeError("no", "{", 0), "VALIDATION"),
        (ConnectionResetError("gone"), "RETRYABLE"),
        (ClientConnectionError("gone"), "RETRYABLE"),
        (socket.gaierror(socket.EAI_AGAIN, "who?"), "RETRYABLE"),
        (urllib.error.URLError(ConnectionRefusedError("no")), "RETRYABLE"),
        (OSError(101, "unreachable"), "RETRYABLE"),
        (caused(ToolDownstreamError(), TimeoutError()), "TIMEOUT"),
        (ToolDownstreamError(), "FATAL"),
        (PermissionError("no"), "FATAL"),
        (KeyError("x"), "FATAL"),
        (ValueError("x"), "FATAL"),
    ],
    ids=repr,
)
def test_exception_maps_to_its_error_type(error: Exception, kind: str) -> None:
    assert describe_failure(error).type == kind


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncio.CancelledError("stopped"), "CANCELLED"),
        (concurrent.futures.CancelledError(), "CANCELLED"),
        (GeneratorExit(), "CANCELLED"),
        (KeyboardInterrupt(), "INTERRUPTED"),
        (SystemExit("a text that is no code"), "INTERRUPTED"),
        (SystemExit(404), "INTERRUPTED"),
    ],
    ids=repr,
)
def test_cancellation_is_a_retryable_error(error: BaseException, code: str) -> None:
    detail = describe_failure(error)
    assert (detail.type, detail.code) == ("RETRYABLE", code)
    assert detail.cause == type(error).__name__
    assert detail.upstream_status is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7000),
        ("0", 0),
        ("Fri, 20 Nov 2026 10:00:30 GMT", 30_000),
        ("Fri, 20 Nov 2026 09:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("9" * 40, None),
        ("", None),
    ],
)
def test_retry_after_is_converted_to_milliseconds(value: str, expected: int | None) -> None:
    for error in (http_error(429, retry_after=value), HTTPStatusError(429, {"Retry-After": value})):
        detail = describe_failure(error, now=NOW)
        assert (detail.upstream_status, detail.retry_after_ms) == (429, expected)


@pytest.mark.parametrize("retries", [False, 1])
def test_refused_connection_is_retryable(retries: int | bool) -> None:
    """By a real client, whose classes say otherwise."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}/"
        with pytest.raises(urllib3.exceptions.HTTPError) as raised:
            urllib3.PoolManager().request("GET", url, retries=retries, timeout=10)

    assert describe_failure(raised.value).type == "RETRYABLE"


def test_error_details_contain_locations_and_no_values() -> None:
    assert describe_failure(caused(InvalidToolArgs(), ValidationException(DETAILS))).details == {
        "errors": [{"loc": ["a", 0], "type": "type"}]
    }
    detail = describe_failure(invalid(), endpoint="search", attempt=2)
    assert detail.details == {"errors": [{"loc": ["query"], "type": "missing"}]}
    assert (detail.endpoint, detail.attempt, detail.cause) == ("search", 2, "ValidationError")


def test_error_envelope_is_typed_by_its_input() -> None:
    envelope = tool_error(TimeoutError(), Question(query="q"), took_ms=3)
    assert type(envelope) is ToolError[Question]
    assert envelope.error.message == "TimeoutError"
    assert json.loads(envelope.model_dump_json())["input"] == {"query": "q"}


# --- functions


@returns_tool_output
def ask(question: Question, *, shout: bool = False) -> Answer:
    """Answers."""
    if question.query == "slow":
        raise TimeoutError("too slow")
    return Answer(answer=question.query.upper() if shout else question.query)


@returns_tool_output
async def ask_async(question: Question) -> Answer:
    if question.query == "cancel":
        raise asyncio.CancelledError
    return Answer(answer=question.query)


def test_decorated_function_returns_an_envelope() -> None:
    result = ask(Question(query="hi"), shout=True)
    assert type(result) is ToolResult[Question, Answer]
    assert result.data == Answer(answer="HI")
    assert result.meta.took_ms >= 0
    assert ask.__doc__ == "Answers."
    adapter: TypeAdapter[Any] = TypeAdapter(ToolOutput[Question, Answer])
    assert adapter.validate_json(result.model_dump_json()) == result
    failed = ask(Question(query="slow"))
    assert isinstance(failed, ToolError)
    assert failed.error.type is ToolErrorType.TIMEOUT
    assert adapter.validate_json(failed.model_dump_json()) == failed


def test_mapping_input_is_parsed_and_invalid_input_is_echoed() -> None:
    ask_anything: Any = ask
    assert ask_anything({"query": "hi"}).input == Question(query="hi")
    for given, echoed in (({"quer": "hi"}, {"quer": "hi"}), (5, {})):
        failed = ask_anything(given)
        assert failed.error.type is ToolErrorType.VALIDATION
        assert failed.model_dump(mode="json")["input"] == echoed


def test_async_functions_stay_async_and_can_be_cancelled() -> None:
    assert inspect.iscoroutinefunction(ask_async)
    result = asyncio.run(_answer("hi"))
    assert isinstance(result, ToolResult)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_answer("cancel"))


async def _answer(query: str) -> Any:
    return await ask_async(Question(query=query))


def test_envelope_built_by_the_function_is_returned_unchanged() -> None:
    envelope = ToolResult[Question, Answer](
        input=Question(query="q"),
        data=Answer(answer="a"),
        meta=ToolResultMeta(took_ms=1, cache_hit=True),
    )

    def prepare(question: Question) -> Any:
        return envelope

    prepared: Any = returns_tool_output(prepare)
    assert prepared(Question(query="q")) is envelope


def test_input_parameter_without_a_model_raises_type_error() -> None:
    with pytest.raises(TypeError, match="pydantic model"):
        returns_tool_output(lambda question: question)


def test_subclass_fields_are_kept_in_the_dump() -> None:
    class Precise(Answer):
        source: str

    result = ToolResult[Question, Answer](
        input=Question(query="q"),
        data=Precise(answer="a", source="s"),
        meta=ToolResultMeta(took_ms=1),
    )
    assert json.loads(result.model_dump_json())["data"] == {"answer": "a", "source": "s"}
