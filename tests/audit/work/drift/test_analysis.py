"""Drift analyses of stored calls: their figures, in the worker and immediately; page and API."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob

from audit.models import DriftAnalysis
from audit.tasks.requested import analyze_drift
from audit.work.drift import job
from audit.work.drift.shape import loads
from audit.work.sightings import note_tools
from tenants.keys import create_key
from tenants.models import Action, Scope, User
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.drift import OUTPUT_SCHEMA, send_outputs, weather_contract
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in
from tools_registry.changes import Publisher
from tools_registry.drafts import find_draft
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import publish_version, register_contracts

PARAMS = {"limit": "1000", "range": "24h"}


@pytest.fixture
def tool(acme: Cast) -> Tool:
    """`get_weather` with one version."""
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.create(tenant=acme.tenant, name="get_weather")
        publish_version(tool, weather_contract(), Publisher(acme.editor))
    return tool


def analyze(cast: Cast, tool: Tool, **params: str) -> DriftAnalysis:
    answer = signed_in(cast.editor).post(f"/tools/{tool.pk}/drift/analyze", PARAMS | params)
    assert answer.status_code == 302
    with tenant_scope(cast.tenant.id):
        analysis = job.last_analysis(tool)
        assert analysis is not None
        return analysis


def page(user: User, tool: Tool) -> str:
    answer = signed_in(user).get(f"/tools/{tool.pk}/drift")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def api(cast: Cast, tool: Tool) -> Any:
    key = create_key(cast.tenant, "reader", [Scope.READ])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    answer = client.get(f"/api/v1/tools/{tool.pk}/drift")
    return answer.json() if answer.status_code == 200 else answer.status_code


def test_structured_content_of_mcp_results_is_analyzed(acme: Cast, tool: Tool) -> None:
    good = {"celsius": 3.5, "sky": "clear", "station": "a"}
    results: list[dict[str, Any]] = [
        {"content": [], "structuredContent": good},
        {"content": [{"type": "text", "text": json.dumps(good)}]},
        {"content": [], "structuredContent": good | {"sky": "rain"}},
        {"content": [{"type": "text", "text": "warm"}]},
    ]
    for n, result in enumerate(results):
        start, end = make_call(
            started_at=datetime.now(UTC) - timedelta(minutes=n + 1),
            output={"status": "ok", "data": result, "meta": {}},
        )
        send_events(acme.tenant, [start, end | {"output_type": "CallToolResult"}])
    analyze(acme, tool)
    places = [
        (one["kind"], one["path"], one["calls"], one["of"])
        for one in api(acme, tool)["differences"]
        if one["side"] == "output"
    ]
    assert places == [("value", "$.sky", 1, 3)]
    assert "not read: MCP result without structured content" in page(acme.editor, tool)


def test_few_calls_are_analyzed_immediately(acme: Cast, tool: Tool) -> None:
    good = {"celsius": 3.5, "sky": "clear"}
    send_outputs(acme, [good] * 6 + [{"celsius": "warm", "sky": "rain", "wind": 3}] * 2)
    send_outputs(acme, [{"other": 1}], tool_name="another")
    analysis = analyze(acme, tool)
    assert (analysis.state, analysis.read_count, analysis.call_count) == ("done", 8, 8)
    differences = {
        (one["side"], one["kind"], one["path"]): one for one in api(acme, tool)["differences"]
    }
    assert {key: (one["calls"], one["of"]) for key, one in differences.items()} == {
        ("output", "type", "$.celsius"): (2, 8),
        ("output", "value", "$.sky"): (2, 8),
        ("output", "undeclared", "$.wind"): (2, 8),
        ("output", "unseen", "$.station"): (0, 8),
    }
    assert differences["output", "type", "$.celsius"]["share"] == 0.25
    (sample, _) = differences["output", "undeclared", "$.wind"]["samples"]
    shown = signed_in(acme.viewer).get(f"/tools/{tool.pk}/drift").content.decode()
    assert f"/calls/{sample['started_on']}/{sample['invocation_id']}" in shown


def test_differences_callers_and_flags_sort(acme: Cast, tool: Tool) -> None:
    good = {"celsius": 3.5, "sky": "clear"}
    send_outputs(acme, [good] * 3 + [good | {"wind": 3, "sky": "rain"}, good | {"wind": 3}])
    send_outputs(acme, [good], tool_version="1")
    analyze(acme, tool)
    client = signed_in(acme.viewer)

    def column(order: str) -> list[str]:
        page = client.get(f"/tools/{tool.pk}/drift?{order}").content.decode()
        return re.findall(r'<td class="lead"><span class="[^"]*"[^>]*>([^<]*)', page)

    assert column("") == ["$.sky", "$.wind", "$.station", "not reported", "v1"]
    assert column("sort-output=calls")[:3] == ["$.wind", "$.sky", "$.station"]
    assert column("sort-output=-path")[:3] == ["$.wind", "$.station", "$.sky"]
    assert column("sort-callers=-calls")[3:] == ["v1", "not reported"]


def test_values_are_hidden_from_roles_without_payload_access(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{"sky": "tropical storm"}, {"sky": "clear"}])
    analysis = analyze(acme, tool)
    assert '"tropical storm"' in page(acme.editor, tool).replace("&quot;", '"')
    seen = page(acme.viewer, tool)
    with tenant_scope(acme.tenant.id):
        (shown,) = Action.objects.filter(tenant=acme.tenant, verb="tool.show-values")
        assert (shown.user_name, shown.subject) == (acme.editor.username, "get_weather")
    assert "tropical" not in seen
    assert "Your role can't view payloads" in seen
    assert "Wrong value" in seen
    assert "tropical" not in str(api(acme, tool))
    assert "tropical" not in analysis.shape, "and none is stored"


def test_many_calls_are_analyzed_by_the_worker(
    acme: Cast, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "AT_ONCE", 5)
    monkeypatch.setattr(job, "CHUNK", 4)
    monkeypatch.setattr(job.run_slice, "__kwdefaults__", {"seconds": 0.0})
    send_outputs(acme, [{"celsius": n} for n in range(10)])
    analysis = analyze(acme, tool)
    assert (analysis.state, analysis.read_count, analysis.call_count) == ("waiting", 0, 10)
    ids = {"tenant_id": str(acme.tenant.id), "analysis_id": str(analysis.id)}
    counts = []
    while True:
        analyze_drift(**ids)
        with tenant_scope(acme.tenant.id):
            now = job.last_analysis(tool)
            assert now is not None
        counts.append(now.read_count)
        if now.state == "done":
            break
        assert "Refresh" in page(acme.viewer, tool)
    assert counts == [4, 8, 10]
    assert loads(now.shape)["output"].shape.members["celsius"].seen.calls == 10
    assert ProcrastinateJob.objects.filter(args__analysis_id=str(analysis.id)).exists()


def test_analysis_can_be_cancelled_and_is_replaced_by_a_new_one(
    acme: Cast, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "AT_ONCE", 0)
    monkeypatch.setattr(job, "CHUNK", 4)
    send_outputs(acme, [{}] * 10)
    first = analyze(acme, tool)
    assert job.run_slice(acme.tenant.id, first.id, seconds=0)
    signed_in(acme.editor).post(f"/tools/{tool.pk}/drift/analyses/{first.id}/cancel")
    with tenant_scope(acme.tenant.id):
        stopped = job.last_analysis(tool)
        assert stopped is not None
    assert (stopped.state, stopped.read_count) == ("cancelled", 4)
    assert not job.run_slice(acme.tenant.id, first.id)
    second, third = analyze(acme, tool), analyze(acme, tool)
    with tenant_scope(acme.tenant.id):
        analyses = DriftAnalysis.objects.for_tenant(acme.tenant.id)
        assert analyses.get(id=second.id).state == "cancelled"
        assert analyses.get(id=third.id).state == "waiting"


def test_only_the_newest_analyses_are_kept(acme: Cast, tool: Tool) -> None:
    for _ in range(job.KEPT + 2):
        analyze(acme, tool)
    with tenant_scope(acme.tenant.id):
        assert DriftAnalysis.objects.for_tenant(acme.tenant.id).count() == job.KEPT


def test_erased_payloads_are_counted(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{}] * 3)
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE batch SET payload = NULL WHERE tenant_id = %s", [acme.tenant.id])
    shapes = loads(analyze(acme, tool).shape)
    assert (shapes["output"].skipped, shapes["args"].skipped) == ({"erased": 3}, {"erased": 3})
    assert "3 calls not read: payload no longer in the log" in page(acme.viewer, tool)


def test_damaged_log_fails_the_analysis_with_a_reason(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{}])
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE batch SET payload = 'x' WHERE tenant_id = %s", [acme.tenant.id])
    analysis = analyze(acme, tool)
    assert (analysis.state, "cannot be decompressed" in analysis.problem) == ("failed", True)
    assert "cannot be decompressed" in page(acme.viewer, tool)


def test_executors_with_an_old_version_are_listed(acme: Cast, tool: Tool) -> None:
    with tenant_scope(acme.tenant.id):
        first = tool.versions.get()
        publish_version(
            tool, weather_contract(description="Again.", trusted=True), Publisher(acme.editor)
        )
    send_outputs(acme, [{}] * 4, tool_version="2", producer_id="new-1")
    send_outputs(acme, [{}] * 2, tool_version=first.digest, producer_id="old-1")
    send_outputs(acme, [{}], tool_version="1", producer_id="old-2")
    send_outputs(acme, [{}] * 3, tool_version="v9-beta", producer_id="odd")
    send_outputs(acme, [{}] * 5)
    analyze(acme, tool)
    versions = {one["named"]: one for one in api(acme, tool)["versions"]}
    assert {
        name: (one["version"], one["is_current"], one["calls"], one["executors"])
        for name, one in versions.items()
    } == {
        "2": (2, True, 4, ["new-1"]),
        first.digest: (1, False, 2, ["old-1"]),
        "1": (1, False, 1, ["old-2"]),
        "v9-beta": (None, False, 3, ["odd"]),
        "": (None, False, 5, []),
    }
    seen = page(acme.viewer, tool)
    assert "old version 1" in seen
    assert "not registered" in seen
    assert "old-2" in seen
    assert api(acme, tool)["flags"] == [
        {"flag": "trusted", "registered": "yes", "reported": "no", "version": 1}
    ]


def test_flags_of_rejected_contracts_are_reported(acme: Cast, tool: Tool) -> None:
    with tenant_scope(acme.tenant.id):
        register_contracts(
            acme.tenant,
            [weather_contract(ephemeral=True, on_collision="keep")],
            Publisher(key_id="key-7"),
        )
    analyze(acme, tool)
    flags = {one["flag"]: (one["registered"], one["reported"]) for one in api(acme, tool)["flags"]}
    assert flags == {"ephemeral": ("no", "yes"), "on_collision": ("throw", "keep")}
    assert "key-7" in page(acme.viewer, tool)


def test_draft_is_created_from_observed_values(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{"celsius": None, "wind": {"speed": 3}}, {"celsius": 1.5}])
    analyze(acme, tool)
    path = f"/tools/{tool.pk}/drift/draft"
    assert signed_in(acme.viewer).post(path).status_code == 403
    assert signed_in(acme.editor).post(path)["Location"] == f"/tools/{tool.pk}/draft"
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        properties = draft.output_schema["properties"]
    assert properties["celsius"] == {"type": ["null", "number"]}
    assert properties["wind"]["properties"] == {"speed": {"type": "integer"}}
    assert properties["sky"] == OUTPUT_SCHEMA["properties"]["sky"]
    assert draft.base_number == 1
    answer = signed_in(acme.editor).post(path, follow=True).content.decode()
    assert "This tool already has a draft" in answer


def test_tool_without_a_version_is_drafted_from_its_calls(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.create(tenant=acme.tenant, name="get_weather")
    send_outputs(acme, [{"celsius": 1}, {"celsius": 2.5}])
    path = f"/tools/{tool.pk}/drift/draft"
    shown = signed_in(acme.editor).post(path, follow=True).content.decode()
    assert "no calls have been analyzed yet" in shown
    analyze(acme, tool)
    assert "No schema declared" in page(acme.viewer, tool)
    signed_in(acme.editor).post(path)
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        assert draft.output_schema == {
            "type": "object",
            "properties": {"celsius": {"type": "number"}},
            "required": ["celsius"],
        }
        assert draft.input_schema["properties"] == {"city": {"type": "string"}}


@pytest.mark.parametrize(("undeclared", "is_cut"), [(97, False), (98, True)])
def test_page_reports_more_differences_than_shown(
    acme: Cast, tool: Tool, undeclared: int, is_cut: bool
) -> None:
    send_outputs(acme, [{f"field_{n}": n for n in range(undeclared)}])
    analyze(acme, tool)  # three declared fields were never seen; 100 differences are shown
    assert ("Only the first differences are shown" in page(acme.viewer, tool)) is is_cut


def test_unreadable_schema_is_reported_without_an_error(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.create(tenant=acme.tenant, name="get_weather")
        old = make_contract(output_schema={"$schema": "http://json-schema.org/draft-04/schema#"})
        publish_version(tool, ToolContract.model_validate(old), Publisher(acme.editor))
    send_outputs(acme, [{"a": 1}])
    assert analyze(acme, tool).state == "done"
    assert "Calls cannot be compared with the schema" in page(acme.viewer, tool)


def test_page_without_an_analysis_is_explained(acme: Cast, tool: Tool) -> None:
    assert "Not analyzed yet" in page(acme.viewer, tool)
    assert api(acme, tool) == 404
    answer = signed_in(acme.editor).post(
        f"/tools/{tool.pk}/drift/analyze", {"limit": "0", "range": "24h"}, follow=True
    )
    assert "Nothing was analyzed" in answer.content.decode()


def test_list_filters_tools_that_were_never_called(acme: Cast, tool: Tool) -> None:
    with tenant_scope(acme.tenant.id):
        register_contracts(acme.tenant, [weather_contract(name="quiet")], Publisher(key_id="key"))
    send_outputs(acme, [{}])
    send_outputs(acme, [{}], tool_name="stranger")

    def listed(state: str) -> set[str]:
        shown = signed_in(acme.viewer).get("/tools/", {"state": state}).content.decode()
        return {name for name in ("get_weather", "quiet", "stranger") if f">{name}</a>" in shown}

    with tenant_scope(acme.tenant.id):
        note_tools(datetime.now(UTC))
    assert listed("uncalled") == {"quiet"}
    assert listed("observed") == {"stranger"}


def test_analysis_is_not_found_for_another_tenant(acme: Cast, globex: Cast, tool: Tool) -> None:
    analysis = analyze(acme, tool)
    for path in (
        "/drift",
        f"/drift/analyses/{analysis.id}/cancel",
        "/drift/analyze",
        "/drift/draft",
    ):
        client = signed_in(globex.admin)
        address = f"/tools/{tool.pk}{path}"
        answer = client.get(address) if path == "/drift" else client.post(address, PARAMS)
        assert answer.status_code == 404
    assert signed_in(acme.viewer).post(f"/tools/{tool.pk}/drift/analyze", PARAMS).status_code == 403


def send_of_two_agents(cast: Cast) -> None:
    """Calls of one agent with an undeclared member, and calls of another without."""
    for n in range(6):
        agent, extra = ("lead", {"mood": 1}) if n % 2 else ("other", {})
        data = {"celsius": 3.5, "sky": "clear", "station": "a", **extra}
        start, end = make_call(
            started_at=datetime.now(UTC) - timedelta(minutes=n + 1),
            output={"status": "ok", "data": data, "meta": {}},
            producer_id=f"host-{agent}",
        )
        send_events(cast.tenant, [start | {"context": {"agent": agent}}, end])


def test_analysis_of_a_query_reads_its_calls_alone(acme: Cast, tool: Tool) -> None:
    send_of_two_agents(acme)
    assert analyze(acme, tool).read_count == 6
    of_other = analyze(acme, tool, q="agent:other since:7d")
    assert (of_other.query, of_other.call_count, of_other.read_count) == ("agent:other", 3, 3)
    assert not any(one["path"].endswith("mood") for one in api(acme, tool)["differences"])
    lead = analyze(acme, tool, q="agent:lead OR agent:none")
    found = api(acme, tool)
    assert lead.read_count == 3
    assert found["query"] == "(agent:lead OR agent:none)"
    assert any(one["path"].endswith("mood") for one in found["differences"])
    assert [one["executors"] for one in found["versions"]] == [["host-lead"]]
    assert "(agent:lead OR agent:none)" in page(acme.viewer, tool)
    with tenant_scope(acme.tenant.id):
        acts = Action.objects.filter(verb="tool.look-for-drift")
        assert acts.filter(details__query="agent:other").exists()


@pytest.mark.parametrize("query", ["agent:", "nonsense:1", "args.city:London", "since:2d until:3d"])
def test_analysis_of_an_invalid_query_is_refused(acme: Cast, tool: Tool, query: str) -> None:
    send_of_two_agents(acme)
    answer = signed_in(acme.editor).post(f"/tools/{tool.pk}/drift/analyze", PARAMS | {"q": query})
    assert answer.status_code == 302
    with tenant_scope(acme.tenant.id):
        assert job.last_analysis(tool) is None
    key = create_key(acme.tenant, "editor", [Scope.REGISTRY])[1]
    refused = Client(headers={"Authorization": f"Bearer {key}"}).post(
        f"/api/v1/tools/{tool.pk}/drift", {"q": query}, content_type="application/json"
    )
    assert (refused.status_code, refused.json()["code"]) == (422, "query")
