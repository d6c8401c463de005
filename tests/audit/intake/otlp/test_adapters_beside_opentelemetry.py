"""A call that an adapter of the SDK and OpenTelemetry both record is one call, in any order.

Each framework really runs, with its own instrumentation, OpenInference's or OpenLLMetry's.
"""

import json
from pathlib import Path

import pytest

from sdk.tests.integrations.calls import run
from tests.support.factories import Cast, make_ingest_key, send_events
from tests.support.otlp_requests import JSON, calls, post

FRAMEWORKS = [
    *("agno", "autogen", "fastmcp", "google_adk", "langchain", "llama_index", "mcp"),
    *("openai_agents", "pydantic_ai", "smolagents", "strands"),
]


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_call_recorded_twice_is_one_call(
    acme: Cast, globex: Cast, tmp_path: Path, framework: str
) -> None:
    """Also parallel calls of one tool, calls of a sub-agent and failed calls, if it makes some."""
    sent = run(framework, tmp_path / "recorded.json").beside
    assert sent is not None
    starts = [event for event in sent["events"] if event["type"] == "toolExecutionStart"]
    expected = {str(start["invocation_id"]): start["tool_name"] for start in starts}
    spans = json.dumps(sent["spans"]).encode()
    for tenant, order in ((acme.tenant, "events spans"), (globex.tenant, "spans events")):
        for part in order.split():
            if part == "events":
                assert send_events(tenant, sent["events"])["rejected"] == []
            else:
                assert post(make_ingest_key(tenant), spans, JSON).status_code == 200
        found = {str(call.row.invocation_id): call.row.tool_name for call in calls(tenant)}
        own = {key: name for key, name in found.items() if name != "final_answer"}
        assert own == expected, order  # smolagents' spans make a tool of its final answer
