"""Each adapter of the JavaScript SDK, with the real framework: every call once, and as it was.

The script of a framework is `sdk-js/test/frameworks/<framework>/run.mjs`; its exact versions are in
the `package.json` beside it.
"""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.integrations.calls import RecordedCall
from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import serving
from tests.support.installation import clean_environment
from tests.support.js_frameworks import TIMEOUT_S, calls_of, install

ROWS = [{"n": 1}, {"n": 2}]
WEATHER = {"celsius": 22.5}


@dataclass(frozen=True)
class Reported:
    """What a framework tells its adapter, and what its script calls beside the usual tools."""

    framework: str
    mode: str = ""
    agent: str | None = "concierge"
    model: str | None = "script-1"
    conversation: str | None = "conv-1"
    tool_call_id: bool = True
    usage: dict[str, int] | None = None
    trace: str | None = "run-1"
    error: str = "boom 7"
    extra: frozenset[str] = field(default=frozenset())


FRAMEWORKS = {
    "mcp client": Reported("mcp", "client", tool_call_id=False),
    "mcp server": Reported(
        "mcp",
        "server",
        tool_call_id=False,
        agent=None,
        model=None,
        conversation=None,
        trace=None,
    ),
    "mcp client and server": Reported("mcp", "both", tool_call_id=False),
    "ai": Reported("ai", extra=frozenset({"count"})),
    "openai-agents": Reported("openai-agents", extra=frozenset({"excused"})),
    "langchain": Reported(
        "langchain",
        trace=None,
        usage={"prompt": 812, "completion": 64},
        extra=frozenset({"ask", "count"}),
    ),
    "mastra": Reported("mastra"),
}


def run(reported: Reported, folder: Path, tmp_path: Path) -> list[RecordedCall]:
    """Run a framework's script with exactly its versions. Fails if the server rejects an event."""
    install(folder)
    with serving() as server:
        ran = subprocess.run(
            ["node", "run.mjs", reported.mode],
            cwd=folder,
            env=clean_environment(
                TOOLTRAIL_URL=server.url,
                TOOLTRAIL_API_KEY=KEY,
                TOOLTRAIL_SPOOL_DIR=str(tmp_path),
                LANGSMITH_TRACING="false",
                MASTRA_TELEMETRY_DISABLED="1",
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert ran.returncode == 0, ran.stderr[-4000:]
        assert "tooltrail:" not in ran.stderr, ran.stderr
        return calls_of(server)


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_adapter_records_each_call_once_and_as_it_was(
    js_sdk: Path, tmp_path: Path, name: str
) -> None:
    reported = FRAMEWORKS[name]
    calls = run(reported, js_sdk / "test" / "frameworks" / reported.framework, tmp_path)
    assert [len(call.ends) for call in calls] == [1] * len(calls), "ended twice, or never"

    def of(tool: str) -> list[RecordedCall]:
        return [call for call in calls if call.start["tool_name"] == tool]

    def one(tool: str) -> RecordedCall:
        [call] = of(tool)
        return call

    weather = of("get_weather")
    assert [call.start["args"] for call in weather] == [{"city": "London"}, {"city": "Paris"}]
    assert [call.data for call in weather] == [WEATHER] * 2
    assert [call.parent for call in weather] == [None, None], "parallel calls are not nested"

    helper, lookup = one("helper"), one("lookup")
    assert (helper.state, lookup.state) == ("ok", "ok")
    assert lookup.parent == helper.id
    assert lookup.start["args"] == {"key": "k"}
    assert lookup.start["trace_id"] == helper.start["trace_id"]
    assert "value of k" in json.dumps([lookup.output, helper.output])

    report = one("report")
    assert report.start["args"] == report.data == {"title": "T", "rows": ROWS}
    assert report.parent is None

    boom = one("boom")
    assert (boom.state, boom.output["error"]["message"]) == ("failed", reported.error)
    assert one("slow").state == "cancelled"

    usual = {"get_weather", "helper", "lookup", "report", "boom", "slow"}
    assert {call.start["tool_name"] for call in calls} == usual | reported.extra
    check_context(weather[0].start, reported)
    if reported.trace or reported.agent:
        first = weather[0].start
        assert {call.start["trace_id"] for call in [*weather, helper]} == {first["trace_id"]}
    if "excused" in reported.extra:
        assert one("excused").state == "failed", "its error was answered with a text"
        assert "Please try again" in one("excused").output["error"]["message"]
    check_types(js_sdk, reported.framework)
    if "ask" in reported.extra:
        assert one("ask").state == "cancelled", "it interrupted the run"
    if reported.framework == "ai":
        assert one("count").data == {"items": 3, "first": 1, "last": 3}
    if reported.framework == "mcp":
        peers = weather[0].ends[0]["mcp"]
        assert (peers["client"]["name"], peers["server"]["name"]) == ("desk", "concierge")
        assert peers["protocol_version"] == "2025-11-25"


def check_types(js_sdk: Path, framework: str) -> None:
    """Compile `types.mts`: the adapter's types fit the framework's."""
    compiler = js_sdk / "node_modules" / "typescript" / "bin" / "tsc"
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"]
    types = ["--typeRoots", str(js_sdk / "node_modules" / "@types"), "--types", "node"]
    checked = subprocess.run(
        ["node", compiler, *options, *types, "types.mts"],
        cwd=js_sdk / "test" / "frameworks" / framework,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert checked.returncode == 0, checked.stdout


def check_context(start: dict[str, Any], reported: Reported) -> None:
    context = start.get("context", {})
    assert (context.get("agent"), context.get("model")) == (reported.agent, reported.model)
    assert start.get("run_id") == reported.conversation
    assert ("tool_call_id" in start) == reported.tool_call_id
    assert start.get("model_usage") == reported.usage
    if reported.trace:
        assert start["trace_id"] == reported.trace
