"""The effect of a version, as page and API: which calls are compared, and the results."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from audit import sql
from audit.alerts.evaluation import evaluate
from audit.alerts.rules import Rule
from audit.alerts.stored import save_rule
from audit.effect.comparison import Verdict, effect_of, windows
from audit.effect.queries import count_calls, version_before
from audit.models import Alert
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tests.support.pages import signed_in, statements
from tests.support.versions import send_calls, two_versions
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.states import set_current
from tools_registry.versions import find_version, publish_version


@pytest.fixture
def at() -> datetime:
    """When version 2 was published: never exactly on the hour."""
    return datetime.now(UTC) - timedelta(days=2, minutes=7)


def page(cast: Cast, tool: Tool, **query: str) -> str:
    answer = signed_in(cast.viewer).get(f"/tools/{tool.pk}/effect", query)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def effect_context(cast: Cast, tool: Tool, **query: str) -> Any:
    key = create_key(cast.tenant, "reader", [Scope.READ])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    answer = client.get(f"/api/v1/tools/{tool.pk}/effect", {"version": "2", **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_calls_of_both_versions_are_separated_by_the_second(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    send_calls(acme, at - timedelta(seconds=40), 40, failed=3, violating=5, tool_version="1")
    send_calls(acme, at, 50, failed=20, violating=6, tool_version="2", duration_ms=900)
    send_calls(acme, at - timedelta(hours=30), 7, tool_version="1")
    send_calls(acme, at + timedelta(hours=30), 9, tool_version="2")
    send_calls(acme, at + timedelta(hours=1), 4, tool_version="1")  # still on version 1
    send_calls(acme, at - timedelta(hours=1), 5, tool_version="2")  # before it was published
    send_calls(acme, at - timedelta(hours=1), 6)  # without a version
    send_calls(acme, at - timedelta(hours=1), 8, tool_name="another", tool_version="1")

    context = effect_context(acme, tool, range="24h")
    assert (context["before"], context["after"]) == (
        {"calls": 40, "failed": 3, "violating": 5, "p95_ms": pytest.approx(20, rel=0.05)},
        {"calls": 50, "failed": 20, "violating": 6, "p95_ms": pytest.approx(900, rel=0.05)},
    )
    assert [one["verdict"] for one in context["measures"]] == [
        "higher",
        "no_significant_difference",
        "not_enough_data",
    ]
    assert effect_context(acme, tool, range="7d")["before"]["calls"] == 47
    everything = effect_context(acme, tool, range="24h", calls="all")
    assert everything["before"]["calls"] == 40 + 5 + 6
    assert everything["after"]["calls"] == 50 + 4
    assert (context["version"], context["before_version"]) == (2, 1)


def test_version_is_recognised_by_its_digest(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    with tenant_scope(acme.tenant.id):
        digests = [version.digest for version in tool.versions.order_by("number")]
    send_calls(acme, at - timedelta(hours=1), 3, tool_version=digests[0])
    send_calls(acme, at + timedelta(hours=1), 4, tool_version=digests[1])
    context = effect_context(acme, tool)
    assert (context["before"]["calls"], context["after"]["calls"]) == (3, 4)


def test_page_claims_only_significant_differences(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    send_calls(acme, at - timedelta(hours=2), 200, failed=30, violating=9, tool_version="1")
    send_calls(acme, at + timedelta(hours=2), 29, tool_version="2")
    few = page(acme, tool)
    assert few.count("Not enough data") == 3
    assert "Improved" not in few
    send_calls(acme, at + timedelta(hours=3), 171, violating=8, duration_ms=300, tool_version="2")
    shown = page(acme, tool)
    assert re.search(r"Failed 15\.0 % 0 % −15\.00 pt Improved z-test, p &lt; 0\.001", shown)
    assert re.search(
        r"Schema violations 4\.50 % 4\.00 % −0\.50 pt No significant difference", shown
    )
    assert re.search(r"p95 duration .* Worse bootstrap at 99 %: \+", shown)
    assert "n = 200" in shown


def test_calls_of_other_versions_are_counted_separately(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    send_calls(acme, at - timedelta(hours=2), 3, tool_version="6")
    send_calls(acme, at + timedelta(hours=2), 4, tool_version="7")
    shown = page(acme, tool)
    assert "n = 0" in shown
    assert re.search(r"7 calls in these windows reported other versions and are not counted", shown)


def test_windows_of_a_new_version_are_as_long_as_its_age() -> None:
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    of = windows(now - timedelta(hours=3), timedelta(days=7), now, UTC)
    assert of is not None
    assert (of.before.length, of.after.length) == (timedelta(hours=3), timedelta(hours=3))
    assert (of.before.end, of.after.end, of.is_short) == (of.after.start, now, True)
    assert windows(now, timedelta(days=7), now, UTC) is None
    of = windows(now - timedelta(days=8), timedelta(days=7), now, UTC)
    assert of is not None
    assert (of.after.end, of.is_short) == (now - timedelta(days=1), False)


def test_previous_version_is_the_one_that_was_current(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    with tenant_scope(acme.tenant.id):
        first, second = find_version(tool, 1), find_version(tool, 2)
        assert first is not None
        assert second is not None
        assert version_before(first) is None
        assert version_before(second) == first
        set_current(first, Publisher(acme.editor))
        contract = ToolContract.model_validate(make_contract(description="Again."))
        third = publish_version(tool, contract, Publisher(acme.editor))
        assert version_before(third) == first


def test_first_and_new_versions_are_no_error(acme: Cast) -> None:
    tool = two_versions(acme, timezone.now())
    assert "Version 1 is the first version" in page(acme, tool, version="1", calls="named")
    assert "n = 0" in page(acme, tool, version="1")
    assert "Not enough data" in page(acme, tool, version="1")
    for query in ({"version": "99"}, {"version": "0"}, {"version": "x"}):
        status = signed_in(acme.viewer).get(f"/tools/{tool.pk}/effect", query).status_code
        assert status == 404


def test_tool_without_a_version_is_explained(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.create(tenant=acme.tenant, name="new")
    assert "No published version" in page(acme, tool)


def test_calls_without_a_version_are_reported(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    send_calls(acme, at - timedelta(hours=2), 5)
    assert "5 calls" in page(acme, tool)
    assert "reported no version" in page(acme, tool)


def test_one_statement_counts_both_windows(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    send_calls(acme, at - timedelta(hours=2), 3, tool_version="1")
    send_calls(acme, at + timedelta(hours=2), 4, tool_version="2")
    with tenant_scope(acme.tenant.id):
        version = find_version(tool, 2)
        assert version is not None
        of = windows(at, timedelta(hours=6), datetime.now(UTC), UTC)
        assert of is not None
        before = version_before(version)
        with statements(1):
            effect = effect_of(count_calls(of, tool.name, before, version), "named")
    assert (effect.before.calls, effect.after.calls) == (3, 4)
    assert [one.verdict for one in effect.measures] == [Verdict.NOT_ENOUGH] * 3


def test_editor_creates_a_draft_from_an_old_version_with_one_click(
    acme: Cast, at: datetime
) -> None:
    tool = two_versions(acme, at)
    client = signed_in(acme.editor)
    shown = client.get(f"/tools/{tool.pk}").content.decode()
    assert "Create draft</button>" in shown
    assert "Create draft from version 1" in client.get(f"/tools/{tool.pk}/1").content.decode()
    assert "Create draft" not in signed_in(acme.viewer).get(f"/tools/{tool.pk}").content.decode()
    client.post(f"/tools/{tool.pk}/draft/begin", {"number": "1"})
    with tenant_scope(acme.tenant.id):
        draft = tool.drafts.get()
        assert (draft.base_number, draft.description) == (1, "Tells the weather.")


def test_alerts_of_the_tool_are_marked_on_the_charts(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    condition = {"measure": "failed", "window_minutes": 5, "alert": 0}
    with tenant_scope(acme.tenant.id):
        for name in (tool.name, "another"):
            watched = condition | {"query": f"tool:{name}"}
            rule = Rule.model_validate({"name": f"{name} fails", "condition": watched})
            save_rule(acme.tenant, acme.editor, rule, at - timedelta(hours=9))
    for name in (tool.name, "another"):
        for hours in (-8, 5):
            when = at + timedelta(hours=hours)
            send_calls(acme, when, 1, failed=1, tool_name=name, tool_version="1")
    with tenant_scope(acme.tenant.id):
        evaluate(at + timedelta(hours=6))
        assert Alert.objects.for_tenant(acme.tenant.id).count() == 4
    answer = signed_in(acme.viewer).get(f"/tools/{tool.pk}/effect", {"range": "24h"})
    failed, violating, p95 = answer.context["charts"]
    assert (violating.marks, p95.marks) == ([], [])
    before, after = failed.marks
    assert before.title.startswith(f"{tool.name} fails") and after.title == before.title
    of = answer.context["windows"]
    assert before.slot < of.parts_before <= after.slot < len(failed.slots)
    start, end = of.after.parts[after.slot - of.parts_before]
    assert start <= at + timedelta(hours=5, minutes=1) and at + timedelta(hours=5) <= end


def send_of_agents(cast: Cast, at: datetime) -> None:
    """One agent's calls fail after version 2, another one's do not."""
    for agent, failed in (("lead", 30), ("other", 2)):
        context = {"agent": agent, "environment": "live"}
        before = at - timedelta(minutes=40)
        send_calls(cast, before, 40, failed=2, tool_version="1", context=context)
        send_calls(cast, at, 40, failed=failed, tool_version="2", context=context)


@pytest.mark.slow
def test_effect_on_the_calls_of_a_query(acme: Cast, at: datetime) -> None:
    tool = two_versions(acme, at)
    send_of_agents(acme, at)
    whole = effect_context(acme, tool, range="24h")
    assert effect_context(acme, tool, range="24h", q="NOT agent:nobody") == whole
    lead = effect_context(acme, tool, range="24h", q="agent:lead environment:live")
    assert (lead["before"]["calls"], lead["after"]["calls"]) == (40, 40)
    assert (lead["after"]["failed"], lead["measures"][0]["verdict"]) == (30, "higher")
    other = effect_context(acme, tool, range="24h", q="agent:other OR agent:none")
    assert other["measures"][0]["verdict"] == "no_significant_difference"
    shown = page(acme, tool, range="24h", q="agent:lead", calls="named")
    assert "n = 40" in shown
    assert "Only calls that match the query are counted." in shown
    answer = signed_in(acme.viewer).get(f"/tools/{tool.pk}/effect", {"q": "agent:lead"})
    assert all(each.endswith(" agent:lead") for each in answer.context["compared"].values())


@pytest.mark.parametrize("query", ["agent:", "nonsense:1", "args.city:London"])
def test_invalid_query_compares_nothing(acme: Cast, at: datetime, query: str) -> None:
    tool = two_versions(acme, at)
    send_of_agents(acme, at)
    assert "Nothing was searched." in page(acme, tool, q=query)
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    answer = client.get(f"/api/v1/tools/{tool.pk}/effect", {"version": "2", "q": query})
    assert (answer.status_code, answer.json()["code"]) == (422, "query")


def test_too_many_calls_of_a_query_are_said_not_guessed(
    acme: Cast, at: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = two_versions(acme, at)
    send_of_agents(acme, at)
    late = "FROM (SELECT pg_sleep(60)) AS late, invocation AS call"
    statement = sql.QUERIES["effect_of_query"].replace("FROM invocation AS call", late)
    monkeypatch.setitem(sql.QUERIES, "effect_of_query", statement)
    monkeypatch.setattr("audit.effect.queries.QUERY_TIMEOUT_MS", 20)
    assert "too many calls to read one by one" in page(acme, tool, q="agent:lead")
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    answer = client.get(f"/api/v1/tools/{tool.pk}/effect", {"version": "2", "q": "agent:lead"})
    assert (answer.status_code, answer.json()["code"]) == (422, "query")
