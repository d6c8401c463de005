"""Guarded tools under a trail: the end event has the guard's result, without secrets."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import pytest
from tooltrail import Redactor, Trail
from tooltrail.errors import ToolDownstreamError
from tooltrail.events import ToolExecutionEnd
from tooltrail.guard import ValidationError, guard
from tooltrail.testing import MemoryTrail
from tooltrail.tools import Tool

WEATHER = {
    "type": "object",
    "properties": {"degrees": {"type": "number"}, "password": {"enum": ["a"]}},
    "required": ["degrees"],
}
ABSENT = object()


def test_guarded_tool_records_strategy_outcome_and_violations(trail: MemoryTrail) -> None:
    @trail.tool(output_schema=WEATHER, on_invalid="coerce-and-warn")
    async def get_weather(degrees: Any) -> Any:
        return {"degrees": degrees}

    assert asyncio.run(get_weather("21")) == {"degrees": 21}
    assert asyncio.run(get_weather(21)) == {"degrees": 21}
    assert trail.models
    _, coerced, _, passed = trail.events
    assert coerced["output"]["data"] == {"degrees": 21}
    assert coerced["guard"]["strategy"] == "coerce-and-warn"
    assert coerced["guard"]["outcome"] == "coerced"
    assert coerced["guard"]["violations"][-1]["code"] == "COERCED"
    assert coerced["guard"]["violations"][-1]["path"] == "$.degrees"
    assert passed["guard"] == {
        "strategy": "coerce-and-warn",
        "outcome": "passed",
        "violations": [],
    }


def test_throwing_guard_fails_the_call_and_leaks_no_secret(trail: MemoryTrail) -> None:
    @trail.tool(output_schema=WEATHER)
    def get_weather() -> Any:
        return {"degrees": 1, "password": "hunter2"}

    with pytest.raises(ValidationError):
        get_weather()
    end = trail.events[1]
    assert end["is_error"]
    assert end["output"]["error"]["type"] == "VALIDATION"
    assert end["output"]["error"]["message"] == "The output breaks its schema at $.password"
    assert end["guard"]["outcome"] == "failed"
    assert end["guard"]["violations"][0]["code"] == "ENUM_MISMATCH"
    assert "hunter2" not in json.dumps(trail.events)


@pytest.mark.parametrize(
    ("on_invalid", "returned"),
    [
        ("throw", {"degrees": "warm"}),
        ("coerce-and-warn", {"degrees": "21"}),
        ("fallback", None),
        ("error-result", {"degrees": [1, {"nested": "warm"}]}),
        ("strip-extra", {"degrees": 21, "extra": "x"}),
    ],
)
def test_original_output_is_recorded_when_the_guard_changes_the_result(
    trail: MemoryTrail, on_invalid: str, returned: Any
) -> None:
    options: dict[str, Any] = {"fallback_value": {}} if on_invalid == "fallback" else {}
    tool = trail.tool(
        output_schema=WEATHER | {"additionalProperties": False}, on_invalid=on_invalid, **options
    )(lambda: returned)

    with suppress(ValidationError):
        tool()

    assert trail.events[1]["guard"]["outcome"] != "passed"
    assert trail.events[1]["guard"]["received"] == returned
    assert trail.models


def test_original_output_is_redacted_like_an_output(trail: MemoryTrail) -> None:
    redactor = Redactor(paths=["$.output.data.mail"], keys=["iban"])
    tool = trail.tool(output_schema=WEATHER, on_invalid="error-result", redact=redactor)(
        lambda: {"degrees": "warm", "mail": "hunter2", "bank": {"iban": "hunter2"}}
    )

    tool()

    end = trail.events[1]
    assert end["guard"]["received"] == {
        "degrees": "warm",
        "mail": "[redacted]",
        "bank": {"iban": "[redacted]"},
    }
    assert {"path": "$.guard.received.mail", "reason": "path"} in end["removed"]
    assert {"path": "$.guard.received.bank.iban", "reason": "name"} in end["removed"]
    assert "hunter2" not in json.dumps(end)


@pytest.mark.parametrize("capture", ["shape", "none"])
def test_original_output_is_omitted_when_capture_is_off(
    trail: MemoryTrail, capture: Literal["shape", "none"]
) -> None:
    tool = trail.tool(output_schema=WEATHER, on_invalid="error-result", capture=capture)(
        lambda: {"degrees": "warm"}
    )

    tool()

    assert "warm" not in json.dumps(trail.events)


def test_guard_applies_when_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLTRAIL_URL", raising=False)

    @Trail().tool(output_schema=WEATHER, on_invalid="error-result")
    def get_weather() -> Any:
        return {}

    assert get_weather()["__error"] is True


def test_guard_options_without_a_schema_are_rejected(trail: MemoryTrail) -> None:
    with pytest.raises(ValueError, match="output_schema"):
        trail.tool(on_invalid="throw")(lambda: None)


def test_recorded_violations_are_limited_to_1000(trail: MemoryTrail) -> None:
    @trail.tool(output_schema={"type": "array", "items": {"type": "string"}})
    def numbers() -> Any:
        return list(range(3000))

    with pytest.raises(ValidationError):
        numbers()
    assert isinstance(trail.models[1], ToolExecutionEnd)
    assert len(trail.events[1]["guard"]["violations"]) == 1000


def silent(*coerced: Any) -> None:
    """A hook, so that coercing is not logged."""


def decorated(trail: MemoryTrail, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return trail.tool(fn)


def executed(trail: MemoryTrail, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    tool = Tool.from_function(fn, name="get_weather", description="Tell the weather")
    execute = tool.executor(trail.context("turn-1"))
    return lambda degrees: asyncio.run(execute({"degrees": degrees}))


@pytest.mark.parametrize("recorded", [decorated, executed])
def test_call_of_an_already_guarded_function_records_its_verdict(
    trail: MemoryTrail, recorded: Callable[..., Callable[[Any], Any]]
) -> None:
    def get_weather(degrees: Any) -> Any:
        return {"degrees": degrees}

    guarded = guard(get_weather, WEATHER, on_invalid="coerce-and-warn", on_coercion=silent)
    run = recorded(trail, guarded)

    assert run("21") == {"degrees": 21}
    assert run(21) == {"degrees": 21}
    assert trail.models
    ends = [event for event in trail.events if event["type"] == "toolExecutionEnd"]
    assert [end["guard"]["outcome"] for end in ends] == ["coerced", "passed"]
    assert [each["code"] for each in ends[0]["guard"]["violations"]] == ["COERCED"]
    assert {event["tool_name"] for event in trail.events} == {"get_weather"}


@pytest.mark.parametrize("recorded", [decorated, executed])
@pytest.mark.parametrize(
    ("degrees", "received"),
    [
        ("21", {"degrees": "21"}),
        (None, {"degrees": None}),
        (21, ABSENT),
        ({"password": "hunter2"}, {"degrees": {"password": "[redacted]"}}),
    ],
)
def test_original_output_is_kept_by_every_way_to_record(
    trail: MemoryTrail,
    recorded: Callable[..., Callable[[Any], Any]],
    degrees: Any,
    received: Any,
) -> None:
    def get_weather(degrees: Any) -> Any:
        return {"degrees": degrees}

    guarded = guard(
        get_weather,
        WEATHER,
        on_invalid="coerce-and-warn",
        coercion_fallback={"degrees": 0},
        on_coercion=silent,
    )

    recorded(trail, guarded)(degrees)

    end = trail.events[1]
    assert end["guard"].get("received", ABSENT) == received
    assert "hunter2" not in json.dumps(end)
    assert trail.models


def test_adk_tool_can_return_an_output_without_json_form(trail: MemoryTrail) -> None:
    endless: dict[str, Any] = {}
    endless["degrees"] = endless
    safe = {"degrees": 0}
    guarded = guard(lambda degrees: endless, WEATHER, on_invalid="fallback", fallback_value=safe)

    assert executed(trail, guarded)(21) == safe

    end = trail.events[1]
    assert end["guard"]["outcome"] == "fallback"
    assert {"path": "$.guard.received", "reason": "not JSON: ValueError"} in end["removed"]


def test_wrapper_around_a_guarded_function_runs_without_a_guard_record(trail: MemoryTrail) -> None:
    from functools import wraps

    guarded = guard(lambda: {"degrees": "warm"}, WEATHER, on_invalid="error-result")

    @wraps(guarded)
    def louder() -> Any:
        return {"loud": guarded()}

    assert trail.tool(louder)()["loud"]["__error"] is True
    assert "guard" not in trail.events[1]  # nobody can say what came of it


def test_outer_guard_verdict_is_recorded(trail: MemoryTrail) -> None:
    inner = guard(
        lambda: {"degrees": "warm"},
        WEATHER,
        on_invalid="fallback",
        fallback_value={"degrees": None},
    )
    tool = trail.tool(output_schema=WEATHER, on_invalid="error-result")(inner)

    assert tool()["__error"] is True
    assert trail.events[1]["guard"]["strategy"] == "error-result"


def test_tool_name_of_the_guard_is_used(trail: MemoryTrail) -> None:
    trail.tool(guard(lambda: {"degrees": 1}, WEATHER, tool_name="get_weather"))()

    assert trail.events[0]["tool_name"] == "get_weather"


def test_throwing_guard_of_a_handler_fails_the_call_and_leaks_no_secret(trail: MemoryTrail) -> None:
    async def handler(args: Any, ctx: Any, meta: Any) -> Any:
        return {"degrees": 1, "password": "hunter2"}

    tool = Tool(
        name="get_weather",
        description="Tell the weather",
        input_schema={"type": "object"},
        handler=guard(handler, WEATHER),
    )

    with pytest.raises(ToolDownstreamError) as raised:
        asyncio.run(tool.executor(trail.context("turn-1"))({}))
    assert isinstance(raised.value.__cause__, ValidationError)
    end = trail.events[1]
    assert end["is_error"]
    assert end["guard"]["outcome"] == "failed"
    assert end["guard"]["violations"][0]["path"] == "$.password"
    assert "hunter2" not in json.dumps(trail.events)


def test_host_adk_context_receives_the_verdict() -> None:
    ended: list[dict[str, Any]] = []

    class Context:
        id = "turn-1"

        def emit_tool_execution_start(self, event: Any) -> None:
            pass

        def emit_tool_execution_end(self, event: Any) -> None:
            ended.append(event.model_dump(by_alias=True, exclude_unset=True))

    def tool(handler: Any) -> Tool:
        return Tool(name="t", description="d", input_schema={"type": "object"}, handler=handler)

    def measure(args: Any, ctx: Any, meta: Any) -> Any:
        return "warm"

    for handler in (measure, guard(measure, {"type": "number"}, on_invalid="error-result")):
        asyncio.run(tool(handler).executor(Context())({}))

    plain, guarded = ended
    assert "guard" not in plain  # nothing the ADK does not have
    assert guarded["guard"]["violations"][0]["llmMessage"].startswith("The field at $ has")


def test_guard_reports_in_emitted_events_are_redacted(trail: MemoryTrail) -> None:
    violation = {
        "path": "$.items[0].apiKey",
        "severity": "error",
        "code": "ENUM_MISMATCH",
        "expected": "a",
        "received": "hunter2",
        "receivedValue": "hunter2",
        "message": "hunter2 is none",
        "llmMessage": "hunter2 is none",
    }
    end = {
        "type": "toolExecutionEnd",
        "turn_id": "t",
        "tool_name": "x",
        "call_id": "c",
        "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:01Z",
        "duration_ms": 1000.0,
        "is_error": False,
    }
    report = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
    trail.emit(end | {"guard": report})
    trail.emit(end | {"guard": {"outcome": "unheard of", "password": "hunter2"}})

    first, second = trail.events
    assert first["guard"]["violations"][0]["path"] == "$.items[0].apiKey"
    assert first["removed"] == [{"path": "$.guard.violations[0]", "reason": "name"}]
    assert second["guard"] == {"outcome": "unheard of", "password": "[redacted]"}
    assert "hunter2" not in json.dumps(trail.events)


@pytest.mark.parametrize(
    ("redactor", "schema", "value"),
    [
        (Redactor(paths=["$.output.data.mail"]), {"enum": ["a"]}, "hunter2"),
        (Redactor(paths=["$.output.data.mail[*]"]), {"enum": ["a"]}, ["b", "hunter2"]),
        (Redactor(paths=["$.output.data.mail.of"]), {"type": "object"}, '{"of": "hunter2"}'),
        (Redactor(paths=["$.output.*.mail"]), {"pattern": "^a"}, "hunter2"),
        (Redactor(patterns={"hunter": "hunter"}), {"enum": ["a"]}, "hunter2"),
        (Redactor(patterns={"hunter": "^hunter2$"}), {"type": "object"}, '{"of": "hunter2"}'),
        (Redactor(keys=["mail"]), {"const": "a"}, "hunter2"),
        (Redactor(keys=["of"]), {"type": "object"}, '{"of": "hunter2"}'),
    ],
)
def test_violations_do_not_quote_redacted_output(
    trail: MemoryTrail, redactor: Redactor, schema: Any, value: Any
) -> None:
    tool = trail.tool(
        output_schema={"type": "object", "properties": {"mail": schema}, "required": ["id"]},
        on_invalid="coerce-and-warn",
        coercion_fallback={},
        on_coercion=silent,
        redact=redactor,
    )(lambda: {"mail": value})

    assert tool() == {}
    end = trail.events[1]
    about = [each for each in end["guard"]["violations"] if each["path"] == "$.mail"]
    assert len(about) == 1
    assert "hunter2" not in json.dumps(end)
    assert {"name", "path", "hunter"} & {note["reason"] for note in end["removed"]}
    (missing,) = (each for each in end["guard"]["violations"] if each["path"] == "$.id")
    assert missing["message"]


def test_sync_function_returning_a_coroutine_ends_with_the_coroutine(trail: MemoryTrail) -> None:
    @trail.tool
    def nested() -> int:
        return 1

    async def get_weather() -> Any:
        await asyncio.sleep(0)
        nested()
        return {"degrees": "21"}

    tool = trail.tool(
        name="get_weather",
        output_schema=WEATHER,
        on_invalid="coerce-and-warn",
        on_coercion=silent,
    )(lambda: get_weather())

    async def run() -> Any:
        waiting = tool()
        nested()  # not a part of it
        return await waiting

    assert asyncio.run(run()) == {"degrees": 21}
    outer, before, _, within, _, end = trail.events
    assert end["output"]["data"] == {"degrees": 21}
    assert end["guard"]["outcome"] == "coerced"
    assert "parent_invocation_id" not in before
    assert within["parent_invocation_id"] == outer["invocation_id"] == end["invocation_id"]
