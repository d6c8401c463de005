"""A client generated from /api/v1/openapi.json works against a running server.

The generator runs in a separate environment, which uv creates from the group `client` on demand
(docs/adr/0004).
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from config.instance import BASE_DIR
from config.openapi import description
from tenants.keys import create_key
from tenants.models import Scope, new_id
from tests.support.api_record import PAYLOAD, Record, make_record
from tests.support.api_story import STORY, make_story
from tests.support.factories import Cast, make_call
from tests.support.installation import clean_environment
from tests.support.server import LiveServer

_UV = os.environ.get("UV") or shutil.which("uv")

API_PAGE = BASE_DIR / "docs" / "api.md"
SENDING = """
import io, json, os, sys
sys.path.insert(0, sys.argv[1])
from tooltrail_client import AuthenticatedClient
from tooltrail_client.api.events import receive_events, receive_traces
from tooltrail_client.api.tools import import_registry
from tooltrail_client.models import ImportRegistryBodyType0, ImportRegistryAs
from tooltrail_client.types import File
client = AuthenticatedClient(base_url=sys.argv[2], token=os.environ["TOOLTRAIL_API_KEY"])
events = File(payload=io.BytesIO(sys.stdin.buffer.read()))
answer = receive_events.sync(client=client, body=events, idempotency_key=sys.argv[3])
tools = [{"name": "f", "description": "F.", "inputSchema": {"type": "object"}}]
taken = import_registry.sync(client=client, body=tools, as_=ImportRegistryAs.DRAFTS, reason="ours")
spans = receive_traces.sync_detailed(client=client, body=File(payload=io.BytesIO(b"")))
print(json.dumps([answer.to_dict(), taken.to_dict(), spans.status_code]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_UV is None, reason="the generator is fetched with uv: not here"),
]


def _run(*command: str, stdin: str = "", **environment: str) -> str:
    assert _UV is not None
    completed = subprocess.run(
        [_UV, "run", "--quiet", "--isolated", "--only-group", "client", *command],
        cwd=BASE_DIR,
        env=clean_environment(**environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.fixture(scope="module")
def client(live_server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a client generated from the server's description."""
    folder = tmp_path_factory.mktemp("generated") / "tooltrail_client"
    shown = re.search(r"^```yaml\n(.*?)^```$", API_PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert shown is not None
    (folder.parent / "client.yml").write_text(shown[1])
    _run(
        *("openapi-python-client", "generate", "--meta", "none"),
        *("--config", str(folder.parent / "client.yml")),
        *("--url", f"{live_server.url}/api/v1/openapi.json", "--output-path", str(folder)),
    )
    return folder


def _call(client: Path, server: LiveServer, record: Record, key: str) -> dict[str, Any]:
    script = str(Path(__file__).parents[3] / "support" / "generated_client.py")
    arguments = json.dumps(record.ids())
    answers: dict[str, Any] = json.loads(
        _run("python", script, str(client), server.url, stdin=arguments, TOOLTRAIL_API_KEY=key)
    )
    return answers


@pytest.mark.sampled("generated client", 1)
def test_every_operation_answers_as_documented(
    client: Path, live_server: LiveServer, acme: Cast
) -> None:
    record = make_record(acme)
    answers = _call(client, live_server, record, record.auditor)
    reading = {
        one["operationId"]
        for methods in description()["paths"].values()
        for method, one in methods.items()
        if method == "get"
    }
    assert set(answers) == reading, (
        "not generated, or not called: Record.ids() must have its arguments"
    )
    assert {name: one["status"] for name, one in answers.items()} == dict.fromkeys(reading, 200)
    assert {name: one["undeclared"] for name, one in answers.items() if one["undeclared"]} == {}

    bodies = {name: one["members"] for name, one in answers.items()}
    assert bodies["read_summary"]["calls"] == 11
    assert bodies["read_summary"]["errors"] == 1
    assert (bodies["read_summary"]["prompt_tokens"], bodies["read_summary"]["open"]) == (800, 1)
    assert len(bodies["list_calls"]["calls"]) == 12
    call = bodies["read_call"]
    assert (call["state"], call["tool_version"], call["withheld"]) == ("failed", "4", False)
    assert call["start"]["event"]["args"] == {"q": PAYLOAD}
    assert call["end"]["event"]["output"]["error"]["message"] == PAYLOAD
    assert call["violations"][0]["path"] == "$.items[3].id"
    assert [one["condition"] for one in bodies["list_open"]["calls"]] == ["running"]
    assert bodies["list_open"]["tally"]["open"] == 1
    traces = {one["trace_id"]: one for one in bodies["list_traces"]["traces"]}
    assert len(traces) == 10
    assert traces["a/trace"]["reason"]["upstream_status"] == 502
    assert traces["loop"]["calls_completed"] == 3
    assert bodies["read_trace"]["calls_failed"] == len(bodies["read_trace"]["calls"]) == 1
    (kind,) = bodies["list_violations"]["violations"]
    assert (kind["path_pattern"], kind["violations"]) == ("$.items[*].id", 1)
    (row,) = bodies["list_violation_rows"]["rows"]
    assert (row["invocation_id"], row["received"]) == (str(record.failed), PAYLOAD)
    assert bodies["list_latency"]["total"]["calls"] == 11
    assert bodies["list_tokens"]["versions"][0]["tokens"] == 860
    assert [(one["kind"], one["calls"]) for one in bodies["list_repeats"]["listed"]] == [
        ("loop", 3),
        ("repeat", 3),
    ]
    (producer,) = bodies["list_producers"]["producers"]
    assert (producer["producer_id"], producer["given_up"]) == ("executor-1", 2)
    assert bodies["list_producers"]["gaps"] == [{"reason": "spool full", "lost": 2, "producers": 1}]
    (report,) = bodies["list_reports"]["reports"]
    assert (report["id"], report["made_by"], report["made_as"]) == (
        str(record.report),
        "auditor",
        "key",
    )
    assert bodies["read_report"]["figures"]["volume"]["calls"] == 11
    assert (bodies["read_ledger"]["entries"], bodies["read_ledger"]["signed"]) == (28, 24)
    (tool,) = bodies["list_definitions"]["definitions"]
    assert (tool["tool"], tool["state"]) == ("get_weather", "pending")
    assert bodies["read_definition"]["classes"] == ["wording"]
    assert bodies["read_ledger"]["witnesses"] == []
    assert len(bodies["prove_inclusion"]["hashes"]) == 5
    assert bodies["prove_consistency"]["hashes"] == []
    (line,) = bodies["list_inbox"]["lines"]
    assert PAYLOAD in line["excerpt"]
    assert json.loads(bodies["read_inbox_line"]["raw"]) == {"type": "neither", "args": PAYLOAD}
    (tool,) = bodies["list_tools"]["tools"]
    assert (tool["name"], tool["version"]) == ("get_weather", 1)
    assert bodies["read_tool"]["versions"][0]["output_schema"]["required"] == ["celsius"]


@pytest.mark.sampled("generated client", 1)
def test_error_answer_is_the_documented_problem(
    client: Path, live_server: LiveServer, acme: Cast
) -> None:
    record = make_record(acme)
    answers = _call(client, live_server, record, record.auditor[:-1] + "x")
    assert {(one["status"], one["is"]) for one in answers.values()} == {(401, "Problem")}
    assert {one["members"]["code"] for one in answers.values()} == {"malformed_key"}


def test_sending_operations_can_be_generated(
    client: Path, live_server: LiveServer, acme: Cast
) -> None:
    """Events as NDJSON, tools as a list, and OTLP: generators used to omit all three."""
    scopes = [Scope.INGEST, Scope.REGISTRY]
    key = create_key(acme.tenant, "client", scopes, created_by=acme.admin)[1]
    lines = "\n".join(json.dumps(event) for event in make_call())
    batch_id = str(new_id())
    printed = _run(
        *("python", "-c", SENDING, str(client.parent), live_server.url, batch_id),
        stdin=lines,
        TOOLTRAIL_API_KEY=key,
    )
    answers, taken, spans = json.loads(printed)
    assert (answers["accepted"], answers["batch_id"], answers["rejected"]) == (2, batch_id, [])
    assert [one["name"] for one in taken["tools"]] == ["f"]
    assert spans == 200


@pytest.mark.sampled("generated client", 1)
def test_every_act_is_done(client: Path, live_server: LiveServer, acme: Cast) -> None:
    key, steps = make_story(acme)
    script = str(Path(__file__).parents[3] / "support" / "generated_acts.py")
    told = json.dumps([vars(step) for step in steps], default=lambda got: {"$got": got.place})
    printed = _run(
        *("python", script, str(client), live_server.url), stdin=told, TOOLTRAIL_API_KEY=key
    )
    answers = json.loads(printed)
    failed = {name: one for name, one in answers.items() if one["status"] not in {200, 201}}
    assert failed == {}
    assert answers.keys() == {step.operation for step in STORY}
