"""A call that an adapter of the SDK and OpenTelemetry both record is one call, in any order.

Each framework really runs, with its own instrumentation or with OpenInference's.
"""

import json
from pathlib import Path

import pytest

from sdk.tests.integrations.calls import run
from tests.support.factories import Cast, make_ingest_key, send_events
from tests.support.otlp_requests import JSON, calls, post

FRAMEWORKS = [
    *("agno", "autogen", "fastmcp", "google_adk", "llama_index", "mcp", "openai_agents"),
    *("pydantic_ai", "smolagents"),
]


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_call_recorded_twice_is_one_call(
    acme: Cast, globex: Cast, tmp_path: Path, framework: str
) -> None:
    sent = run(framework, tmp_path / "recorded.json").beside
    assert sent is not None
    spans = json.dumps(sent["spans"]).encode()
    for tenant, order in ((acme.tenant, "events spans"), (globex.tenant, "spans events")):
        for part in order.split():
            if part == "events":
                assert send_events(tenant, sent["events"])["rejected"] == []
            else:
                assert post(make_ingest_key(tenant), spans, JSON).status_code == 200
        names = [call.row.tool_name for call in calls(tenant)]
        assert names.count("get_weather") == 1, order
        assert set(names) <= {"get_weather", "final_answer"}  # a tool for smolagents' spans only
