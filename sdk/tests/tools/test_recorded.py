"""Recorded rows of the ADK: constructing and executing tools, both registries."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tooltrail.errors import ToolAlreadyRegistered, TooltrailError
from tooltrail.tools import Registry, Tool, ToolRegistry

from sdk.tests.support.vectors import cases

ANY_OBJECT = {"type": "object", "additionalProperties": True}
MEMBERS = {"inputSchema": "input_schema", "onCollision": "on_collision"}


def noted(error: TooltrailError) -> dict[str, Any]:
    return {
        "name": error.name,
        "code": error.code,
        "message": error.message,
        "status": error.status,
        "fatal": error.fatal,
    }


def construct_exempt(row: dict[str, Any]) -> str | None:
    overrides = row["overrides"]
    if overrides.get("inputSchema") == {"type": "object"}:
        return "decision 13: input schemas are JSON Schema here"
    if None in [overrides.get(name, "") for name in ("meta", "ephemeral", "trusted")]:
        return "decisions, Python API: None for an optional member means not given"
    return None


@cases("tool_construct.jsonl", exempt=construct_exempt)
def test_recorded_construct_rows(row: dict[str, Any]) -> None:
    placeholders = {
        "<callable>": lambda *_: "",
        "<schema of type object>": ANY_OBJECT,
        "<schema of type string>": {"type": "string"},
    }
    members: dict[str, Any] = {
        "name": "search",
        "description": "searches",
        "input_schema": ANY_OBJECT,
        "handler": lambda *_: "ok",
    }
    for name, value in row["overrides"].items():
        value = placeholders.get(value, value) if isinstance(value, str) else value
        members[MEMBERS.get(name, name)] = value
    for name in row["removed"]:
        del members[MEMBERS.get(name, name)]
    if expected := row["outcome"].get("throws"):
        with pytest.raises(TooltrailError) as caught:
            Tool(**members)
        assert noted(caught.value) == expected
        assert isinstance(caught.value, TypeError)
        return
    tool = Tool(**members)
    assert row["outcome"]["ok"] == {
        "name": tool.name,
        "description": tool.description,
        "ephemeral": tool.ephemeral,
        "trusted": tool.trusted,
        "on_collision": tool.on_collision,
        "meta": tool.meta.all(),
        "artifact_constructor_set": tool.artifact_constructor is not None,
    }


class RecordingContext:
    """A context that writes down what it hears, and may refuse to."""

    def __init__(self, turn_id: str, emit_failure: str | None) -> None:
        self.id = turn_id
        self.events: list[dict[str, Any]] = []
        self._failures = {"start": ["start"], "end-once": ["end"], "end": ["end"] * 2}.get(
            emit_failure or "", []
        )

    def emit_tool_execution_start(self, event: Any) -> None:
        payload = event.model_dump(by_alias=True)
        self.events.append({"event": "tool_execution_start", "fields": list(payload), **payload})
        self._fail("start")

    def emit_tool_execution_end(self, event: Any) -> None:
        payload = event.model_dump(by_alias=True)
        payload["duration_is_non_negative_number"] = payload["durationMs"] >= 0
        payload["ended_not_before_started"] = payload["endedAt"] >= payload["startedAt"]
        fields = [name for name in payload if "_" not in name]
        self.events.append({"event": "tool_execution_end", "fields": fields, **payload})
        self._fail("end")

    def _fail(self, kind: str) -> None:
        if self._failures and self._failures[0] == kind:
            self._failures.pop(0)
            raise RuntimeError("listener boom")


@cases("tool_executor.jsonl")
def test_recorded_executor_rows(row: dict[str, Any]) -> None:
    ctx = RecordingContext(row["turn_id"], row.get("emit_failure"))
    how = row["handler"]
    handler_calls: list[dict[str, Any]] = []

    def handle(args: Any, given: Any, meta: Registry) -> Any:
        ctx.events.append({"event": "handler"})
        handler_calls.append({"args": args, "same_context": given is ctx, "meta": meta.all()})
        for key in ("throws", "throws_value"):
            if key in how:
                raise RuntimeError(how[key])
        return how.get("returns", how.get("returns_async"))

    async def handle_async(args: Any, given: Any, meta: Registry) -> Any:
        if "rejects" in how:
            handle(args, given, meta)
            raise RuntimeError(how["rejects"])
        return handle(args, given, meta)

    tool = Tool(
        name=row["tool"]["name"],
        description="recorded",
        input_schema=row["tool"]["input_schema"],
        meta=row["tool"]["meta"],
        handler=handle_async if {"returns_async", "rejects"} & how.keys() else handle,
    )
    outcome = row["outcome"]
    if "throws" in outcome:
        with pytest.raises((TooltrailError, RuntimeError)) as caught:
            asyncio.run(_run(tool, ctx, row["args"]))
        error, cause = caught.value, caught.value.__cause__
        if isinstance(error, TooltrailError):
            assert noted(error) == outcome["throws"]
        else:
            assert str(error) == outcome["throws"]["message"]
        # Python raises nothing but exceptions, so what a handler threw is always the cause.
        if "throws_value" not in how:
            assert (cause is None) == (outcome["cause"] is None)
        if (outcome["cause"] or {}).get("is_validation_detail"):
            assert getattr(cause, "details", None)
        elif outcome["cause"]:
            assert str(cause) == outcome["cause"]["message"]
    else:
        assert asyncio.run(_run(tool, ctx, row["args"])) == outcome["returns"]
    assert [
        {key: event[key] for key in recorded}
        for event, recorded in zip(ctx.events, row["events"], strict=True)
    ] == row["events"]
    assert handler_calls == row["handler_calls"]


async def _run(tool: Tool, ctx: Any, args: Any) -> Any:
    return await tool.executor(ctx)(args)


def make_tool(spec: dict[str, Any]) -> Tool:
    return Tool(
        name=spec["name"],
        description="recorded",
        input_schema=ANY_OBJECT,
        handler=lambda *_: "",
        meta={"tag": spec["tag"]},
        ephemeral=spec.get("ephemeral"),
        on_collision=spec.get("onCollision"),
    )


def listed(tools: list[Tool]) -> list[dict[str, Any]]:
    return [{"name": tool.name, "tag": tool.meta.get("tag")} for tool in tools]


def state(registry: ToolRegistry) -> dict[str, Any]:
    return {
        "all": listed(registry.all()),
        "visible": [tool.name for tool in registry.visible()],
        "hidden": [tool.name for tool in registry.hidden()],
    }


@cases("tool_registry.jsonl", "registry.merge")
def test_recorded_merge_rows(row: dict[str, Any]) -> None:
    sources = []
    for spec in row["registries"]:
        source = ToolRegistry(make_tool(tool) for tool in spec["tools"])
        source.hide(*spec.get("hidden", ()))
        sources.append(source)
    before = [state(source) for source in sources]
    options = {MEMBERS[name]: value for name, value in (row["options"] or {}).items()}
    outcome = row["outcome"]
    if expected := outcome.get("throws"):
        with pytest.raises(ToolAlreadyRegistered) as caught:
            ToolRegistry.merge(sources, **options)
        assert noted(caught.value) == expected
    else:
        merged = ToolRegistry.merge(sources, **options)
        assert state(merged) == {key: outcome[key] for key in ("all", "visible", "hidden")}
        assert [tool.name for tool in merged.all() if tool.ephemeral] == outcome["ephemeral"]
        for _ in range(2):
            merged.prune_ephemeral()
            assert state(merged) == outcome["after_prune"]
    assert ([state(source) for source in sources] == before) is row["inputs_unchanged"]


OPERATIONS = {
    "setHidden": "set_hidden",
    "clearHidden": "clear_hidden",
    "pruneEphemeral": "prune_ephemeral",
}


def sequence_exempt(row: dict[str, Any]) -> str | None:
    if "hiding an unregistered name" in row.get("note", ""):
        return "decision 12: hiding an unknown name has no effect"
    return None


@cases("tool_registry.jsonl", "registry.sequence", exempt=sequence_exempt)
def test_recorded_sequence_rows(row: dict[str, Any]) -> None:
    registry = ToolRegistry()
    for step in row["steps"]:
        operation = getattr(registry, OPERATIONS.get(step["op"], step["op"]))

        def run(step: dict[str, Any] = step, operation: Any = operation) -> Any:
            args = [make_tool(arg) if isinstance(arg, dict) else arg for arg in step["args"]]
            return operation(*args)

        if expected := step.get("throws"):
            with pytest.raises(TooltrailError) as caught:
                run()
            assert noted(caught.value) == expected
        else:
            result = run()
            assert (listed([result])[0] if isinstance(result, Tool) else result) == step["result"]
        assert state(registry) == {key: step[key] for key in ("all", "visible", "hidden")}


def js_quirk(row: dict[str, Any]) -> str | None:
    if "js-quirk" in row.get("tags", ()):
        return "decisions, preamble: `length` is an accident of JavaScript objects"
    if row["api"] == "meta.construct" and row["initial"] is None:
        return "decisions, Python API: None for an optional member means not given"
    return None


@cases("tool_meta_registry.jsonl", exempt=js_quirk)
def test_recorded_meta_registry_rows(row: dict[str, Any]) -> None:
    expected = row["outcome"]
    if row["api"] == "meta.construct":
        with pytest.raises(TooltrailError) as caught:
            Registry(row["initial"])
        assert noted(caught.value) == expected["throws"]
        return
    registry = Registry(row["initial"])
    if row["api"] == "meta.get":
        default = (row["default"],) if row["default_given"] else ()
        assert registry.get(row["key"], *default) == expected["returns"]
        assert registry.has(row["key"]) is expected["has"]
    elif row["api"] == "meta.keys":
        assert registry.keys() == expected["returns"]
    elif "throws" in expected:
        with pytest.raises(TypeError):
            registry.set(row["key"], row["value"])
    else:
        registry.set(row["key"], row["value"])
        assert registry.all() == expected["all"]
        assert registry.get(row["key"]) == expected["get"]
        assert registry.keys() == expected["keys"]


def test_acknowledgement_prunes_ephemeral_tools() -> None:
    handlers: list[Any] = []

    def on_ack(handler: Any) -> Any:
        handlers.append(handler)
        return lambda: handlers.remove(handler)

    ctx = SimpleNamespace(on_ack=on_ack)
    registry = ToolRegistry([make_tool({"name": "a", "tag": "1", "ephemeral": True})])
    registry.bind_context(ctx)()
    assert handlers == []
    registry.bind_context(ctx)
    handlers[0]()
    assert registry.all() == []
