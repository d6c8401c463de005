"""`tooltrail check` as a process against a running server with stored calls."""

import json
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from audit.models import Replay
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.check_command import Checker, make_checker
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.registered_tools import register_tool
from tests.support.server import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.sampled("tooltrail check", 2)]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
PUBLISHED: dict[str, Any] = {
    "name": "get_weather",
    "description": "Tells the weather.",
    "inputSchema": CITY,
    "outputSchema": {"type": "object", "required": ["celsius"]},
}
BREAKING = PUBLISHED | {
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 3}}}
}
MENDED = PUBLISHED | {"description": "Tells the weather of a city."}


@pytest.fixture
def acme() -> Cast:
    """A tenant with a published tool and three stored calls."""
    cast = make_cast("acme")
    register_tool(cast)
    for city in ("Rom", "London", "Paris"):
        output = {"status": "ok", "data": {"celsius": 20}, "meta": {}}
        call = make_call(tool_name="get_weather", args={"city": city}, output=output)
        send_events(cast.tenant, call)
    return cast


@pytest.fixture
def checker(live_server: LiveServer, acme: Cast, tmp_path: Path) -> Checker:
    """Someone who checks in an empty folder."""
    return make_checker(live_server, acme, tmp_path)


def write(checker: Checker, *tools: Any, name: str = "tools.json") -> str:
    """Write a file of definitions; its name."""
    (checker.folder / name).write_text(json.dumps({"tools": tools}, indent=2))
    return name


def test_breaking_change_fails_with_the_calls_that_break(checker: Checker) -> None:
    completed = checker.check(write(checker, BREAKING))
    assert completed.returncode == 1, completed.stderr
    lines = completed.stdout.splitlines()
    assert lines[0] == ("breaks: get_weather (version 1), callers: breaking, consumers: compatible")
    assert "  ✗ breaks-callers $.city" in lines
    assert "  ✗ new-violations $.city" in lines
    assert any("2 stored calls" in line for line in lines)
    assert lines[-1] == "1 tool: 1 breaks"
    assert completed.stderr == "tooltrail: calls of get_weather are replayed\n"


def test_mended_unchanged_and_new_tools_pass(checker: Checker) -> None:
    new = {"name": "new", "inputSchema": {"type": "object"}}
    completed = checker.check(write(checker, MENDED, new), "--json")
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    assert report["counts"] == {
        "breaks": 0,
        "not checked": 0,
        "accepted": 0,
        "changed": 1,
        "new": 1,
        "unchanged": 0,
    }
    assert [one["replay"] for one in report["tools"]] == [None, None]  # same schemas
    assert checker.check(write(checker, PUBLISHED)).returncode == 0
    assert checker.check(write(checker, new), "--require-published").returncode == 2


def test_compatible_schemas_are_replayed(checker: Checker) -> None:
    wider = PUBLISHED | {"inputSchema": {"type": "object"}}
    report = json.loads(checker.check(write(checker, wider), "--json").stdout)
    (tool,) = report["tools"]
    assert (tool["verdict"], tool["callers"]) == ("changed", "compatible")
    replay = tool["replay"]
    assert (replay["state"], replay["calls"], replay["newly_violating"]) == ("done", 3, 0)
    assert {side["side"]: side["judged"] for side in replay["sides"]} == {"args": 3, "output": 3}


def test_what_cannot_be_checked_is_no_break(
    checker: Checker, live_server: LiveServer, acme: Cast, tmp_path: Path
) -> None:
    file = write(checker, PUBLISHED | {"inputSchema": {"type": "object"}})
    reader = make_checker(live_server, acme, tmp_path, Scope.READ)
    refused = reader.check(file)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "registry" in refused.stderr
    assert reader.check(file, "--no-replay").returncode == 0
    assert make_checker(live_server, acme, tmp_path, Scope.INGEST).check(file).returncode == 2
    away = checker.check(file, "--url", "http://127.0.0.1:9")
    assert (away.returncode, "cannot be reached" in away.stderr) == (2, True)
    wrong = checker.check(file, "--range", "soon")
    assert (wrong.returncode, "range" in wrong.stderr) == (2, True)
    assert checker.check("none.json").returncode == 2


def test_case_of_the_regression_set_breaks(checker: Checker) -> None:
    """Only calls that the range does not have anymore, in a set, would break."""
    tenant = checker.cast.tenant
    call = make_call(
        tool_name="get_weather",
        args={"city": "Llanfairpwllgwyngyll"},
        output={"status": "ok", "data": {"celsius": 9}, "meta": {}},
        started_at=datetime.now(UTC) - timedelta(hours=3),
    )
    send_events(tenant, call)
    api = program(tenant)
    api.do("notes", {"about": "call", "invocation_id": call[0]["invocation_id"], "label": "long"})
    (tool,) = api.get("tools")["items"]
    path = f"tools/{tool['id']}/regression-set"
    api.do(path, {"label": "long", "reason": "the longest name"})
    city = {"type": "string", "maxLength": 10}
    schema = {"type": "object", "properties": {"city": city}}
    words = (write(checker, PUBLISHED | {"inputSchema": schema}), "--range", "1h", "--json")
    (checked,) = json.loads(checker.check(*words).stdout)["tools"]
    rules = [one["rule"] for one in checked["findings"]]
    assert rules == ["breaks-callers", "regression"]
    assert checked["replay"]["newly_violating"] == 0
    assert call[0]["invocation_id"] in checked["findings"][1]["message"]


def test_intended_break_is_accepted_in_a_file(checker: Checker) -> None:
    file = write(checker, BREAKING)
    found = json.loads(checker.check(file, "--json").stdout)["tools"][0]["findings"]
    rules = {one["rule"]: one["id"] for one in found if one["level"] == "error"}
    assert set(rules) == {"breaks-callers", "new-violations"}
    words = ("--policy", "policy.json", "--reason", "Both callers are changed.")
    one_only = ("--accept", rules["breaks-callers"], "--until", "2999-12-31")
    part = checker.check(file, *words, *one_only)
    assert part.returncode == 1, "the other break is not listed"
    assert "  ~ breaks-callers $.city" in part.stdout
    assert "  ✗ new-violations $.city" in part.stdout
    both = checker.check(file, *words, "--accept", rules["new-violations"], "--until", "2999-12-31")
    assert both.returncode == 0, both.stdout + both.stderr
    assert both.stdout.splitlines()[-1] == "1 tool: 1 accepted"
    stored = json.loads((checker.folder / "policy.json").read_text())
    assert [one["id"] for one in stored["accepted"]] == [*rules.values()]

    # Whoever goes further than what was accepted is stopped.
    narrower = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 2}}}
    further = checker.check(
        write(checker, BREAKING | {"inputSchema": narrower}), "--policy", "policy.json"
    )
    assert further.returncode == 1
    assert "does not occur. Remove" in further.stdout
    mended = checker.check(write(checker, MENDED), "--policy", "policy.json", "--json")
    assert mended.returncode == 0
    (tool,) = json.loads(mended.stdout)["tools"]
    assert len(tool["unused"]) == 2
    # One by one: which break it is, is not to be guessed.
    unknown = checker.check(file, *words, "--accept", "0" * 16, "--until", "2999-12-31")
    assert (unknown.returncode, "no break has the id" in unknown.stderr) == (2, True)


def test_policy_requires_a_regression_set(checker: Checker) -> None:
    tenant = checker.cast.tenant
    policy = {"format": "tooltrail-check-policy", "version": 1}
    required = {"tool": "get_weather", "label": "long", "cases": 1}
    (checker.folder / "policy.json").write_text(
        json.dumps({**policy, "regression_sets": [required]})
    )
    file = write(checker, MENDED)
    words = (file, "--policy", "policy.json")
    missing = checker.check(*words)
    assert (missing.returncode, "no-regression-set" in missing.stdout) == (2, True)
    assert missing.stdout.splitlines()[-1] == "1 tool: 1 not checked"
    api = program(tenant)
    call = make_call(
        tool_name="get_weather",
        args={"city": "Rom"},
        output={"status": "ok", "data": {"celsius": 9}, "meta": {}},
    )
    send_events(tenant, call)
    api.do("notes", {"about": "call", "invocation_id": call[0]["invocation_id"], "label": "long"})
    (tool,) = api.get("tools")["items"]
    api.do(f"tools/{tool['id']}/regression-set", {"label": "long", "reason": "the longest name"})
    assert checker.check(*words).returncode == 0
    for wrong in ({"label": "other"}, {"version": 2}, {"cases": 2}):
        (checker.folder / "policy.json").write_text(
            json.dumps({**policy, "regression_sets": [required | wrong]})
        )
        assert checker.check(*words).returncode == 2, wrong


def test_tools_of_a_running_mcp_server_are_new_here(checker: Checker) -> None:
    """Our own `/mcp` is one."""
    url = f"{checker.server.url}/mcp"
    completed = checker.check("--mcp", url, "--json", MCP_AUTHORIZATION=f"Bearer {checker.key}")
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    assert report["counts"]["new"] == len(report["tools"]) > 10
    refused = checker.check("--mcp", url)
    assert (refused.returncode, "the server" in refused.stderr) == (2, True)


def states(checker: Checker) -> list[str]:
    """Of all replays."""
    tenant_id = checker.cast.tenant.id
    with tenant_scope(tenant_id):
        return list(Replay.objects.for_tenant(tenant_id).values_list("state", flat=True))


def test_replays_that_nobody_waits_for_are_cancelled(checker: Checker) -> None:
    file = write(checker, PUBLISHED | {"inputSchema": {"type": "object"}})
    process = checker.start(file, "--timeout", "1")  # no worker replays meanwhile
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "not checked: get_weather" in out
    assert "did not end in time" in out
    assert states(checker) == ["cancelled"]

    process = checker.start(file)
    end = time.monotonic() + 60
    while "waiting" not in states(checker):
        assert time.monotonic() < end, "nothing was started"
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert states(checker) == ["cancelled", "cancelled"]
