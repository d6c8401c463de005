"""`Trail.definitions`: only what changed is sent, through the spool, and never raises."""

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from tooltrail import Trail
from tooltrail.events import ToolDefinitions
from tooltrail.testing import MemoryTrail

from sdk.tests.support.ingest_server import Server

WEATHER = {"name": "get_weather", "description": "The weather.", "inputSchema": {"type": "object"}}
OTHER = {"name": "other", "inputSchema": {"type": "object"}}


def reported(trail: MemoryTrail) -> list[list[str]]:
    """The names of the tools in each event."""
    models = [each for each in trail.models if isinstance(each, ToolDefinitions)]
    return [[tool["name"] for tool in each.tools] for each in models]


def test_list_is_reported_once_and_again_if_it_changed() -> None:
    trail = MemoryTrail()
    assert trail.definitions("weather", [WEATHER])
    assert not trail.definitions("weather", [WEATHER])
    assert trail.definitions("weather", [WEATHER, OTHER])
    assert not trail.definitions("weather", [OTHER])
    assert trail.definitions("weather", [WEATHER | {"annotations": {"destructiveHint": True}}])
    assert trail.definitions("weather", [WEATHER])
    assert trail.definitions("weather", [WEATHER], client="another")
    assert trail.definitions("elsewhere", [WEATHER])
    assert len(reported(trail)) == 6


def test_event_has_server_client_and_definitions_as_served() -> None:
    trail = MemoryTrail()
    trail.definitions({"name": "weather", "version": "1"}, [WEATHER], client={"name": "agent"})
    (event,) = trail.events
    assert event["server"] == {"name": "weather", "version": "1"}
    assert event["client"] == {"name": "agent"}
    assert event["tools"] == [WEATHER]
    assert "producer_seq" not in event and event["seen_at"].endswith("+00:00")


class _Annotations(BaseModel):
    readOnlyHint: bool | None = None  # noqa: N815
    destructiveHint: bool | None = None  # noqa: N815


class _Tool(BaseModel):
    """As MCP's SDK has it."""

    name: str
    description: str | None = None
    input_schema: dict[str, Any] = Field(alias="inputSchema")
    annotations: _Annotations | None = None
    meta: dict[str, Any] | None = Field(alias="_meta", default=None)


class _Result(BaseModel):
    tools: list[_Tool]


class _Info(BaseModel):
    name: str
    version: str
    title: str | None = None


def test_models_of_mcp_are_taken() -> None:
    trail = MemoryTrail()
    tool = _Tool(
        name="t",
        inputSchema={"type": "object", "default": None},
        annotations=_Annotations(readOnlyHint=True),
        _meta={"a": 1},
    )
    assert trail.definitions(_Info(name="s", version="2"), _Result(tools=[tool]))
    assert not trail.definitions(_Info(name="s", version="2"), [tool])
    (event,) = trail.events
    assert event["server"] == {"name": "s", "version": "2"}
    assert event["tools"][0]["annotations"] == {"readOnlyHint": True}
    assert event["tools"][0]["_meta"] == {"a": 1}
    assert event["tools"][0]["inputSchema"] == {"type": "object", "default": None}
    assert "description" not in event["tools"][0]


def test_long_list_becomes_several_events_of_one_moment() -> None:
    trail = MemoryTrail()
    tools = [OTHER | {"name": f"t{at}", "description": "x" * 20_000} for at in range(100)]
    assert trail.definitions("s", tools)
    lists = reported(trail)
    assert len(lists) > 1
    assert [name for each in lists for name in each] == [f"t{at}" for at in range(100)]
    assert len({event["seen_at"] for event in trail.events}) == 1


@pytest.mark.parametrize(
    ("server", "tools"),
    [
        ("", [WEATHER]),
        ({}, [WEATHER]),
        ("s", [{}]),
        ("s", [WEATHER, WEATHER]),
        ("s", 7),
        ("s", ["text"]),
        ("s" * 300, [WEATHER]),
    ],
)
def test_unusable_lists_are_logged_and_do_not_raise(
    server: Any, tools: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trail = Trail("http://127.0.0.1:1", "tt_key", spool="memory")
    with caplog.at_level(logging.WARNING, logger="tooltrail"):
        assert trail.definitions(server, tools) is False
    assert "error in the SDK" in caplog.text
    trail.close(0)


def test_trail_that_is_off_reports_nothing() -> None:
    assert Trail("", "").definitions("s", [WEATHER]) is False


def lists_at(server: Server) -> list[dict[str, Any]]:
    events = [event for request in server.requests for event in _lines(request)]
    return [event for event in events if event.get("type") == "toolDefinitions"]


def _lines(request: Any) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = request.events
    return events


@pytest.mark.parametrize("spool", ["memory", "process"])
def test_list_is_sent_with_the_calls_around_it(server: Server, spool: Any, tmp_path: Path) -> None:
    trail = Trail(server.url, "tt_key", spool=spool, spool_dir=tmp_path)
    with trail.record("get_weather"):
        trail.definitions("weather", [WEATHER])
    assert trail.close(20)
    assert [event["tools"] for event in lists_at(server)] == [[WEATHER]]
    starts = [each for each in server.events if each["type"] != "toolDefinitions"]
    assert sorted(each["producer_seq"] for each in starts) == [0, 1]
    assert server.gaps == {}


def test_older_server_gets_the_calls_and_no_definitions(server: Server, tmp_path: Path) -> None:
    server.contract = 1
    trail = Trail(server.url, "tt_key", spool_dir=tmp_path)
    trail.definitions("weather", [WEATHER])
    with trail.record("get_weather"):
        pass
    trail.close(5)
    assert lists_at(server) == []
    assert len(server.events) == 2
    server.contract = 2
    later = Trail(server.url, "tt_key", spool_dir=tmp_path)
    with later.record("get_weather"):
        pass
    server.wait(lambda: len(lists_at(server)) == 1)
    later.close(5)


def test_threads_report_a_list_at_least_once() -> None:
    trail = MemoryTrail()
    threads = [threading.Thread(target=trail.definitions, args=("s", [WEATHER])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(reported(trail)) <= 8
