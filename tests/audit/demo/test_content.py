"""The demo contains everything it promises, all recorded by the SDK, and a visitor reads it."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect
from tooltrail.contracts import ToolErrorType
from tooltrail.guard.options import Outcome
from tooltrail.guard.violations import ViolationCode

from audit.demo.agents import WHO
from audit.demo.watched import BOARD, RULES
from audit.effect.comparison import CALLS_MIN
from config.instance import BASE_DIR
from tests.support.browser_errors import complaints
from tests.support.demo import Demo
from tests.support.installation import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

PATH = re.compile(r"\$\.\w+")  # a violation's path, as in the reason of a row

TRICKLE_WITHIN_S = 60.0  # a trace every two to eight seconds


def test_demo_imports_neither_django_nor_the_database() -> None:
    """Checked in a new process, where no other code has imported them."""
    program = "import sys, audit.demo.__main__; print(*{m.partition('.')[0] for m in sys.modules})"
    imported = subprocess.run(
        [sys.executable, "-c", program], cwd=BASE_DIR, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tooltrail" in imported
    assert not {"django", "psycopg", "config", "tenants", "tools_registry"} & set(imported)


def test_history_has_about_2000_calls_over_the_past_day(demo: Demo) -> None:
    [(count, hours, first, last)] = demo.query(
        "SELECT count(*), count(DISTINCT date_trunc('hour', started_at)),"
        " %s - min(started_at), %s - max(started_at) FROM invocation WHERE started_at < %s",
        *(demo.begun_at,) * 3,
    )
    assert 1_800 <= count <= 2_300
    assert 20 <= hours <= 25
    assert first.total_seconds() < 25 * 3600
    assert last.total_seconds() < 3600


def test_every_call_was_recorded_as_events_in_the_log(demo: Demo) -> None:
    """A row inserted by hand would have no position in the log, or no producer."""
    [(calls, with_start, ends)] = demo.query(
        "SELECT count(*), count(start_batch_id), count(end_batch_id) FROM invocation"
    )
    assert calls == with_start
    assert demo.query("SELECT FROM invocation WHERE producer_id IS NULL") == []
    [(logged, heard)] = demo.query(
        "SELECT (SELECT sum(event_count) FROM batch WHERE NOT is_own),"
        " (SELECT sum(event_count) FROM producer)"
    )
    assert logged == heard  # the demo continues to send, so count only these calls' events
    assert logged >= with_start + ends
    assert demo.query("SELECT code, message FROM rejected_event") == []
    assert demo.query("SELECT FROM gap") == []


def test_no_event_is_in_the_future(demo: Demo) -> None:
    assert (
        demo.query(
            "SELECT tool_name, ended_at, received_at FROM invocation JOIN batch"
            " ON batch.tenant_id = invocation.tenant_id AND batch_id = end_batch_id"
            " WHERE ended_at > received_at OR started_at > received_at"
        )
        == []
    )


def test_its_tools_and_models_have_a_cost(demo: Demo) -> None:
    def costs() -> Any:
        request = Request(  # the demo's own server
            f"{demo.url}/api/v1/costs?range=24h",
            headers={"Authorization": f"Bearer {demo.api_key}"},
        )
        with urlopen(request, timeout=60) as answer:  # as above
            return json.load(answer)

    until(lambda: costs()["total"])  # the worker counts the units first
    document = costs()
    assert document["currency"] == document["tokens"]["currency"] == "USD"
    assert float(document["total"]["amount"]) > 0
    assert document["total"]["without_price"] > 0
    assert float(document["tokens"]["total"]["amount"]) > 0
    agents = {one["name"] for one in document["tokens"]["newest"]["agents"]}
    assert agents == {who[0] for who in WHO.values()}


def test_every_error_type_occurs(demo: Demo) -> None:
    types = {kind for (kind,) in demo.query("SELECT DISTINCT error_type FROM invocation")}
    # GUARD in the index: the guard returned an error result instead of raising.
    assert types - {"", "GUARD"} == {kind.value for kind in ToolErrorType}


def test_every_violation_code_occurs(demo: Demo) -> None:
    codes = {code for (code,) in demo.query("SELECT DISTINCT code FROM violation")}
    assert codes == set(get_args(ViolationCode))


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_guard_outcome_occurs(demo: Demo, outcome: str) -> None:
    [(count,)] = demo.query("SELECT count(*) FROM invocation WHERE guard_outcome = %s", outcome)
    assert count > 1


def test_cache_hits_and_misses_occur(demo: Demo) -> None:
    counts = demo.query("SELECT cache_hit, count(*) FROM invocation GROUP BY 1")
    assert dict(counts)[True] > 10
    assert dict(counts)[False] > 0


def test_retries_carry_their_attempt_and_follow_a_failure(demo: Demo) -> None:
    retries = demo.query(
        "SELECT second.attempt FROM invocation second JOIN invocation first"
        " ON first.tenant_id = second.tenant_id AND first.trace_id = second.trace_id"
        " AND first.tool_name = second.tool_name AND first.attempt = second.attempt - 1"
        " AND first.started_at < second.started_at AND first.state = 'failed'"
    )
    assert (2,) in retries


def test_repeated_calls_and_polling_occur(demo: Demo) -> None:
    repeated = demo.query(
        "SELECT tool_name FROM invocation"
        " GROUP BY tool_name, call_id, trace_id, parent_invocation_id HAVING count(*) >= 5"
    )
    assert {("search_docs",), ("poll_job",)} <= set(repeated)


def test_nested_calls_run_concurrently(demo: Demo) -> None:
    [(beside,)] = demo.query(
        "SELECT count(*) FROM invocation child JOIN invocation parent"
        " ON parent.tenant_id = child.tenant_id"
        " AND parent.invocation_id = child.parent_invocation_id"
        " JOIN invocation other ON other.tenant_id = child.tenant_id"
        " AND other.parent_invocation_id = child.parent_invocation_id"
        " AND other.started_at > child.started_at AND other.started_at < child.ended_at"
        " WHERE child.started_at >= parent.started_at AND child.ended_at <= parent.ended_at"
    )
    assert beside > 10


def test_one_call_hangs_and_one_executor_was_killed_during_a_call(demo: Demo) -> None:
    open_calls = demo.query(
        "SELECT tool_name, started_at < %s, timeouts_ms FROM invocation"
        " WHERE state = 'open' AND run_id IN ('graph_run_killed', 'graph_run_waiting')",
        demo.begun_at,
    )
    assert sorted(open_calls) == [("export_report", False, None), ("notify_user", True, 30_000)]
    owners = demo.query(
        "SELECT producer_id, bool_or(ended_at IS NOT NULL) FROM invocation"
        " WHERE producer_id = (SELECT producer_id FROM invocation"
        " WHERE run_id = 'graph_run_killed') GROUP BY 1"
    )
    assert [has_ended_any for _, has_ended_any in owners] == [False]


def test_tokens_cases_and_output_schemas_occur(demo: Demo) -> None:
    [(tokens, contexts, described)] = demo.query(
        "SELECT (SELECT count(*) FROM invocation WHERE prompt_tokens > 0),"
        " (SELECT count(DISTINCT case_id) FROM invocation),"
        " (SELECT count(*) FROM tool_version WHERE output_schema IS NOT NULL)"
    )
    assert tokens > 100
    assert contexts > 10
    assert described >= 3


def test_registry_contains_every_version_named_by_calls(demo: Demo) -> None:
    unknown = demo.query(
        "SELECT DISTINCT tool_name, tool_version FROM invocation WHERE tool_version <> ''"
        " AND NOT EXISTS (SELECT FROM tool JOIN tool_version published"
        " ON published.tenant_id = tool.tenant_id AND published.tool_id = tool.id"
        " WHERE tool.tenant_id = invocation.tenant_id AND tool.name = invocation.tool_name"
        " AND published.number::text = invocation.tool_version)"
    )
    assert unknown == []


def test_both_versions_of_the_release_have_enough_calls_to_compare(demo: Demo) -> None:
    """The history is backdated and the registry publishes now: the page compared 0 calls with 0."""
    [(before, after)] = demo.query(
        "SELECT count(*) FILTER (WHERE tool_version = '1' AND started_at < published.created_at"
        " AND started_at > published.created_at - (clock_timestamp() - published.created_at)),"
        " count(*) FILTER (WHERE tool_version = '2' AND started_at >= published.created_at)"
        " FROM tool JOIN tool_version published"
        " ON published.tenant_id = tool.tenant_id AND published.tool_id = tool.id"
        " JOIN invocation ON invocation.tenant_id = tool.tenant_id AND tool_name = tool.name"
        " WHERE tool.name = 'get_weather' AND published.number = 2 AND state <> 'open'"
    )
    assert min(before, after) >= CALLS_MIN


def test_stricter_version_adds_kinds_of_violations(demo: Demo) -> None:
    kinds: dict[str, set[str]] = {"1": set(), "2": set()}
    for version, code in demo.query(
        "SELECT tool_version, code FROM violation WHERE tool_name = 'get_weather'"
    ):
        kinds[version].add(code)
    assert kinds["1"]
    assert kinds["2"] > kinds["1"]
    [(looser, stricter)] = demo.query(
        "SELECT min(started_at) FILTER (WHERE tool_version = '1') < %s - interval '8 hours',"
        " min(started_at) FILTER (WHERE tool_version = '2') < %s - interval '1 hour'"
        " FROM invocation WHERE tool_name = 'get_weather'",
        *(demo.begun_at,) * 2,
    )
    assert (looser, stricter) == (True, True)


def test_new_calls_keep_arriving_after_the_history(demo: Demo) -> None:
    def calls() -> int:
        request = Request(
            f"{demo.url}/api/v1/summary?range=24h",
            headers={"Authorization": f"Bearer {demo.api_key}"},
        )
        with urlopen(request) as answer:
            return int(json.load(answer)["calls"])

    before = calls()
    deadline = time.monotonic() + TRICKLE_WITHIN_S
    while calls() == before:
        assert time.monotonic() < deadline, "no further call has arrived"
        time.sleep(0.2)


def test_rules_of_the_tenant_fire_and_it_has_a_board(demo: Demo) -> None:
    assert demo.query("SELECT name, user_id FROM board") == [(BOARD["name"], None)]
    named = {name for (name,) in demo.query("SELECT name FROM alert_rule")}
    assert named == {rule["name"] for rule in RULES}
    fired = until(lambda: demo.query("SELECT rule_name FROM alert WHERE state <> 'resolved'"))
    assert {name for (name,) in fired} <= named


@pytest.fixture(params=[True, False], ids=["with-javascript", "without-javascript"])
def visitor(request: pytest.FixtureRequest, browser: "Browser", demo: Demo) -> Iterator[Page]:
    """A new tab, with and without JavaScript."""
    context = browser.new_context(base_url=demo.url, java_script_enabled=request.param)
    yield context.new_page()
    context.close()


@pytest.mark.generated(1)
def test_user_signs_in_and_reaches_the_violation(visitor: Page, demo: Demo) -> None:
    page, heard = visitor, complaints(visitor)
    page.goto("/")
    page.get_by_label("Username").fill(demo.user)
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in", exact=True).click()

    # The start page shows the tools with most failures.
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("table").filter(has_text="get_weather").first).to_be_visible()

    # The list of failed traces, page by page until one has a violation.
    page.get_by_label("Main").get_by_role("link", name="Traces").click()
    page.get_by_label("State").get_by_role("link", name="Failed").click()
    page.wait_for_url("**/traces/?state=failed")
    # A trace of an agent; traces of the watch (audit/demo/agents.py) have one call each.
    agents = page.get_by_role("row").filter(has_not_text="demo-watch")
    broken = agents.filter(has_text="get_weather").filter(has_text="$.")
    while broken.count() == 0:
        page.get_by_role("link", name="Older").click()
        page.wait_for_url("**before=**")
    page.wait_for_load_state()
    shown = broken.first.inner_text()
    path = PATH.search(shown)
    assert path is not None, shown
    broken.first.get_by_role("link").click()

    # The timeline opens at the first failure. Select another row, then the failure again.
    page.wait_for_url("**/traces/demo-*")
    panel = page.locator("#call-panel")
    expect(panel).to_contain_text("get_weather")
    rows = page.locator(".calls li")
    rows.first.get_by_role("link").click()
    expect(panel).to_contain_text("plan_trip")
    rows.filter(has_text="get_weather").filter(has_text=path[0]).first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"\?call=[0-9a-f-]{36}$"))
    expect(panel.get_by_role("heading", level=2)).to_contain_text("get_weather")

    # The violation with path, expected and received value; then the raw event.
    [stored] = demo.query(
        "SELECT path, code, expected, received FROM violation WHERE invocation_id = %s",
        page.url.rpartition("call=")[2],
    )
    violation = panel.get_by_role("table").get_by_role("row").filter(has_text=path[0])
    for text in stored:
        expect(violation).to_contain_text(text)
    end = panel.locator("details").filter(has_text=re.compile(r"End\s+#\d"))
    end.locator("summary").click()
    expect(end.locator("pre")).to_contain_text('"type":"toolExecutionEnd"')
    expect(end.locator("pre")).to_contain_text(stored[1])
    assert heard == []
