"""`tooltrail query` as a separate process against a running server."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.api_record import PAYLOAD, Record, make_record
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    send_events,
)
from tests.support.installation import clean_environment
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow

SHOWN = {
    "summary": "violations  1",
    "traces": "a/trace",
    "calls": "search",
    "violations": "$.items[*].id",
    "latency": "search",
    "tokens": "860",
    "agents": "AGENT",
    "conversations": "CONVERSATION",
    "repeats": "loop",
    "open": "running",
    "producers": "executor-1",
    "inbox": "invalid_event",
    "tools": "get_weather",
    "registry": "get_weather",
    "ledger": "entries  ",
    "checkpoints": "SIGNED (UTC)",
    "reports": "KIND",
    "channels": "hooks.example",
    "streams": "soc",
    "keys": "auditor",
}
"""By view, what is to be found there."""
ROWS = {"traces": 10, "calls": 12, "keys": 3}
"""How many there are, where not one."""


@pytest.fixture(scope="module")
def record() -> Record:
    """A tenant with every kind of data."""
    return make_record(make_cast("acme"))


def query(
    server: LiveServer, key: str, *words: str, columns: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    environment = clean_environment(TOOLTRAIL_URL=server.url, TOOLTRAIL_API_KEY=key)
    environment.pop("COLUMNS", None)
    return subprocess.run(
        [sys.executable, "-m", "tooltrail", "query", *words],
        env=environment | ({"COLUMNS": columns} if columns else {}),
        capture_output=True,
        text=True,
        timeout=60,
    )


def documents(completed: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The lines of `--json`."""
    assert completed.returncode == 0, completed.stderr
    return [json.loads(line) for line in completed.stdout.splitlines()]


@pytest.mark.parametrize("view", SHOWN)
@pytest.mark.generated(2)
def test_each_view_prints_a_fitting_table_and_json(
    live_server: LiveServer, record: Record, view: str
) -> None:
    completed = query(live_server, record.auditor, view, columns="80")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert all(len(line) <= 80 for line in completed.stdout.splitlines())
    assert SHOWN[view] in completed.stdout
    rows = documents(query(live_server, record.auditor, view, "--json"))
    assert len(rows) == ROWS.get(view, 1)


@pytest.mark.sampled("query command", 2)
def test_call_and_trace_are_printed(live_server: LiveServer, record: Record) -> None:
    call = query(live_server, record.auditor, "call", str(record.failed)).stdout
    assert f'"q": "{PAYLOAD}"' in call
    assert "expected integer" in call
    withheld = query(live_server, record.reader, "call", str(record.failed))
    assert PAYLOAD not in withheld.stdout
    assert "lacks the scope payloads" in withheld.stdout
    trace = query(live_server, record.auditor, "trace", "a/trace").stdout
    assert str(record.failed) in trace
    assert "calls failed  1" in trace
    (document,) = documents(query(live_server, record.auditor, "trace", "a/trace", "--json"))
    assert document["trace_id"] == "a/trace"


@pytest.mark.sampled("query command", 2)
def test_a_tool_is_named_by_its_name_or_id(live_server: LiveServer, record: Record) -> None:
    for words, expected in (
        (("tool",), "current version  "),
        (("diff", "--from", "1", "--to", "1"), "0 changes; callers: compatible"),
        (("effect", "--version", "1"), "failed"),
        (("drift",), "against version "),
    ):
        view, *options = words
        for name in ("get_weather", str(record.tool)):
            completed = query(live_server, record.auditor, view, name, *options)
            assert (completed.returncode, completed.stderr) == (0, ""), words
            assert expected in completed.stdout, words
    unknown = query(live_server, record.auditor, "tool", "nobody's")
    assert (unknown.returncode, "no tool is named nobody's" in unknown.stderr) == (1, True)
    wrong = query(live_server, record.auditor, "diff", "get_weather", "--from", "1")
    assert (wrong.returncode, "--to" in wrong.stderr) == (2, True)


@pytest.mark.sampled("query command", 2)
def test_follow_shows_calls_as_they_arrive(live_server: LiveServer, acme: Cast) -> None:
    send_events(acme.tenant, make_call(tool_name="before"))
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    words = ("query", "calls", "--follow", "--every", "0.5", "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "tooltrail", *words],
        env=clean_environment(TOOLTRAIL_URL=live_server.url, TOOLTRAIL_API_KEY=key),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["tool_name"] == "before"
            start, end = make_call(tool_name="after")
            send_events(acme.tenant, [start])
            first = json.loads(process.stdout.readline())
            send_events(acme.tenant, [end])
            second = json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert [one["tool_name"] for one in (first, second)] == ["after", "after"]
    assert first["state"] != second["state"]


@pytest.mark.sampled("query command", 2)
def test_filters_are_applied_by_the_server(live_server: LiveServer, record: Record) -> None:
    calls = documents(
        query(live_server, record.auditor, "calls", "tool:search", "state:error", "--json")
    )
    assert [call["invocation_id"] for call in calls] == [str(record.failed)]
    rows = documents(query(live_server, record.auditor, "violations", "--rows", "--json"))
    assert [row["received"] for row in rows] == [PAYLOAD]
    assert documents(
        query(live_server, record.auditor, "violations", "violation:*", "--rows", "--json")
    ) == [row for row in rows if row["side"] == "results"]
    (latency,) = documents(query(live_server, record.auditor, "latency", "tool:search", "--json"))
    assert {one["tool_name"] for one in latency["items"]} == {"search"}
    (every,) = documents(query(live_server, record.auditor, "latency", "--json"))
    assert latency["total"]["calls"] < every["total"]["calls"]
    none = query(live_server, record.auditor, "violations", "--tool", "nobody's")
    assert "No results." in none.stdout


@pytest.mark.sampled("query command", 2)
def test_actions_of_users_and_programs_are_printed(live_server: LiveServer, record: Record) -> None:
    (action,) = documents(
        query(live_server, record.reader, "actions", "--verb", "report.", "--json")
    )
    assert (action["verb"], action["details"]) == ("report.create", None)
    shown = query(live_server, record.auditor, "actions", "--subject", "get_weather", columns="80")
    assert "tool.publish" in shown.stdout


@pytest.mark.sampled("query command", 2)
def test_limit_and_all_options_page_through_calls(live_server: LiveServer, acme: Cast) -> None:
    events = [event for n in range(205) for event in make_call(trace_id=f"trace-{n}")]
    send_events(acme.tenant, events)
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    some = query(live_server, key, "calls", "--limit", "3", "--json")
    assert len(documents(some)) == 3
    assert "rows shown; use --limit" in some.stderr
    every = documents(query(live_server, key, "calls", "--all", "--json"))
    assert len({call["invocation_id"] for call in every}) == 205
    assert len(documents(query(live_server, key, "calls", "--limit", "203", "--json"))) == 203


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("calls", "nope:1"), 2, "nope"),
        (("summary", "--range", "5x"), 2, "range must be minutes"),
        (("call", f"{'0' * 8}-0000-0000-0000-{'0' * 12}"), 1, "Call not found"),
        (("call", "nonsense"), 1, "address does not exist"),
        (("trace", "nobody's"), 1, "Trace not found"),
        (("calls", "--limit", "0"), 2, "--limit"),
        (("nonsense",), 2, "invalid choice"),
        ((), 2, "required"),
    ],
)
@pytest.mark.generated(2)
def test_query_errors_are_reported(
    live_server: LiveServer, record: Record, words: tuple[str, ...], code: int, expected: str
) -> None:
    completed = query(live_server, record.auditor, *words)
    assert completed.returncode == code
    assert expected in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.sampled("query command", 2)
def test_wrong_key_and_unreachable_server_are_reported(live_server: LiveServer, acme: Cast) -> None:
    wrong = query(live_server, "tt_wrong", "summary")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "not a Tooltrail API key" in wrong.stderr
    sender = create_key(acme.tenant, "sender", [Scope.INGEST])[1]
    assert "lacks the scope read" in query(live_server, sender, "summary").stderr
    unreachable = query(LiveServer("http://127.0.0.1:9"), sender, "summary")
    assert unreachable.returncode == 1
    assert "cannot be reached" in unreachable.stderr
    unset = query(LiveServer(""), "", "summary")
    assert (unset.returncode, "TOOLTRAIL_API_KEY" in unset.stderr) == (2, True)
    other = query(LiveServer(f"{live_server.url}/login?"), sender, "summary")
    assert other.returncode == 1
    assert "not from a Tooltrail server" in other.stderr


@pytest.mark.sampled("query command", 2)
def test_control_characters_of_agents_are_escaped(live_server: LiveServer, acme: Cast) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07\u202e"
    error = {"type": "FATAL", "message": hostile}
    call = make_call(
        tool_name=f"tool{hostile}",
        trace_id=f"trace{hostile}",
        args={hostile: [hostile]},
        output={"status": "error", "error": error},
    )
    send_events(acme.tenant, call)
    key = create_key(acme.tenant, "reader", [Scope.READ, Scope.PAYLOADS])[1]
    for words in (
        ("calls",),
        ("traces",),
        ("latency",),
        ("trace", f"trace{hostile}"),
        ("call", call[0]["invocation_id"]),
        ("calls", "--json"),
        ("calls", f"tool:tool{hostile}", "nope:1"),
    ):
        completed = query(live_server, key, *words)
        for text in (completed.stdout, completed.stderr):
            assert not set(text) & {"\x1b", "\x07", "\u202e"}, words


def test_help_shows_examples_and_exit_codes(live_server: LiveServer) -> None:
    completed = query(live_server, "", "--help")
    assert completed.returncode == 0
    assert "tooltrail query calls tool:search state:error" in completed.stdout
    assert "Exit codes" in completed.stdout
