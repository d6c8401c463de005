"""The pages of alerts and rules: make one from a query, try it, answer an alert."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse

from audit.alerts.evaluation import SETTLING, evaluate
from audit.alerts.quiet import all_windows
from audit.alerts.stored import all_rules, delete_rule
from audit.models import Alert, ChannelKind
from tenants.scope import tenant_scope
from tests.support.alerts import alert_of_stored_calls, fired_alert
from tests.support.deliveries import make_channel
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in, text

RULE: dict[str, Any] = {
    "name": "weather fails",
    "query": "tool:get_weather",
    "measure": "failed_share",
    "window_minutes": 60,
    "compare_with": "number",
    "direction": "above",
    "warning": 20,
    "alert": 60,
    "for_minutes": 0,
    "no_data": "nothing",
    "is_enabled": "on",
}
FAILED = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {"took_ms": 1}}


def fail(cast: Cast, *hours: float, ok: int = 1, failed: int = 1) -> None:
    """Calls that started so many hours ago; some of them failed."""
    events = []
    for ago in hours:
        at = datetime.now(UTC) - timedelta(hours=ago)
        for n in range(ok + failed):
            more: dict[str, Any] = {"is_error": True, "output": FAILED} if n >= ok else {}
            events += make_call(started_at=at, **more)
    send_events(cast.tenant, events)


@pytest.mark.slow
def test_a_rule_is_made_from_a_query_of_calls_tried_and_saved(acme: Cast, globex: Cast) -> None:
    fail(acme, 50, 30)
    fail(acme, 10, ok=0)
    fail(acme, 49.5, ok=1, failed=0)
    client = signed_in(acme.editor)
    calls = client.get("/calls/?q=tool:get_weather since:24h").content.decode()
    address = "/alerts/rules/new?q=tool%3Aget_weather%20since%3A24h"
    assert f'href="{address}"' in calls
    page = client.get(address).content.decode()
    assert 'value="tool:get_weather"' in page, "the rule has a window of its own"

    tried = text(client.post("/alerts/rules/new", RULE | {"act": "try"}).content.decode())
    assert "In the last 30 days this would have fired 3 times." in tried
    assert "weather fails: share of failed calls 100 % in 1 h, above 60 %" in tried
    assert tried.count("View calls") == 3
    with tenant_scope(acme.tenant.id):
        assert all_rules() == [], "a trial saves nothing"

    assert client.post("/alerts/rules/new", RULE | {"act": "save"}).status_code == 302
    listed = text(client.get("/alerts/rules/").content.decode())
    assert "Share of failed calls in 1 h above 20 % (warning) or 60 % (alert)" in listed
    again = client.post("/alerts/rules/new", RULE | {"act": "save"})
    assert again.status_code == 422 or "Another rule has this name." in again.content.decode()
    assert "weather fails" not in signed_in(globex.editor).get("/alerts/rules/").content.decode()


@pytest.mark.slow
def test_each_instant_of_a_trial_links_to_its_calls(acme: Cast) -> None:
    fail(acme, 30, ok=1, failed=2)
    client = signed_in(acme.editor)
    page = client.post("/alerts/rules/new", RULE | {"act": "try"})
    (fired,) = page.context["tried"].fired
    shown = client.get("/calls/", {"q": fired.query}).content.decode()
    assert shown.count('class="which"') == 3
    chart = page.context["tried"].chart
    assert [one.name for one in chart.series] == [
        "Share of failed calls",
        "Warning threshold",
        "Alert threshold",
        "Fires",
    ]
    assert max(value or 0 for value in chart.series[-1].values) == pytest.approx(2 / 3)


@pytest.mark.slow
def test_an_alert_is_listed_acknowledged_and_resolved(acme: Cast, globex: Cast) -> None:
    client = signed_in(acme.editor)
    client.post("/alerts/rules/new", RULE | {"act": "save"})
    fail(acme, 0.01, ok=1, failed=2)
    with tenant_scope(acme.tenant.id):
        evaluate(datetime.now(UTC) + timedelta(minutes=1) + SETTLING)
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
    listed = client.get("/alerts/").content.decode()
    assert "share of failed calls 66.7 % in 1 h, above 60 %" in text(listed)
    assert '<span class="nav-count is-violation" title="1 not resolved">1<' in listed
    address = f"/alerts/{alert.id}"
    assert "View its calls" in client.get(address).content.decode()

    empty = client.post(f"{address}/acknowledge", {"note": " "}, follow=True)
    assert "Enter a note." in empty.content.decode()
    client.post(f"{address}/acknowledge", {"note": "I look <b>into</b> it"})
    page = client.get(address).content.decode()
    assert "I look &lt;b&gt;into&lt;/b&gt; it" in page
    assert f"{address}/acknowledge" not in page
    client.post(f"{address}/resolve", {"note": "restarted"})
    assert "restarted" in client.get(address).content.decode()
    assert "No unresolved alerts" in client.get("/alerts/").content.decode()
    assert "weather fails" in client.get("/alerts/?state=all").content.decode()

    viewer = signed_in(acme.viewer)
    assert "restarted" in viewer.get(address).content.decode()
    assert viewer.post(f"{address}/resolve", {"note": "no"}).status_code == 403
    assert signed_in(globex.admin).get(address).status_code == 404
    log = text(signed_in(acme.admin).get("/actions/?verb=alert.").content.decode())
    assert "alert.acknowledge" in log and "restarted" in log


def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(acme: Cast) -> None:
    client = signed_in(acme.editor)
    for members, why in (
        ({"query": "since:1h"}, "the rule has a window of its own"),
        ({"query": "nonsense:x"}, "nonsense"),
        ({"warning": "", "alert": ""}, "Enter a threshold"),
        ({"warning": 70}, "after the warning threshold"),
        ({"window_minutes": 720, "query": "state:error"}, "only tool and version"),
        ({"name": ""}, "This field is required."),
        ({"measure": "money"}, "Select a valid choice"),
    ):
        answer = client.post("/alerts/rules/new", RULE | members | {"act": "save"})
        assert answer.status_code == 422
        page = answer.content.decode()
        assert why in text(page), members
        if "query" in members:
            assert f'value="{members["query"]}"' in page
    with tenant_scope(acme.tenant.id):
        assert all_rules() == []


def test_a_rule_is_changed_muted_and_deleted(acme: Cast) -> None:
    client = signed_in(acme.editor)
    client.post("/alerts/rules/new", RULE | {"act": "save"})
    client.post("/alerts/rules/new", RULE | {"name": "second", "act": "save"})
    with tenant_scope(acme.tenant.id):
        second, first = sorted(all_rules(), key=lambda one: one.name)
    address = reverse("alert_rule_edit", args=[first.id])
    assert 'value="weather fails"' in client.get(address).content.decode()
    taken = client.post(address, RULE | {"name": "second", "act": "save"})
    assert "Another rule has this name." in taken.content.decode()
    client.post(address, RULE | {"name": "renamed", "is_enabled": "", "act": "save"})
    assert "disabled" in text(client.get("/alerts/rules/").content.decode())

    mute = reverse("alert_rule_mute", args=[second.id])
    client.post(mute, {"minutes": 60, "reason": ""})
    assert "muted until" not in text(client.get("/alerts/rules/").content.decode())
    client.post(mute, {"minutes": 60, "reason": "maintenance"})
    assert "muted until" in text(client.get("/alerts/rules/").content.decode())
    client.post(mute, {"minutes": 0})
    assert "muted until" not in text(client.get("/alerts/rules/").content.decode())
    client.post(reverse("alert_rule_delete", args=[second.id]))
    with tenant_scope(acme.tenant.id):
        assert [one.name for one in all_rules()] == ["renamed"]


def test_violations_lead_to_a_rule_about_them(acme: Cast) -> None:
    client = signed_in(acme.editor)
    page = client.get("/violations/?tool=search&code=WRONG_TYPE").content.decode()
    address = "/alerts/rules/new?q=tool%3Asearch+violation%3AWRONG_TYPE&amp;measure=violations"
    assert f'href="{address}"' in page
    form = client.get(address.replace("&amp;", "&")).context["form"]
    assert form.initial["query"] == "tool:search violation:WRONG_TYPE"
    assert form.initial["measure"] == "violations"


def test_channels_and_repeats_of_a_rule_are_chosen_in_its_form(acme: Cast) -> None:
    client = signed_in(acme.editor)
    assert "None chosen: all channels" not in client.get("/alerts/rules/new").content.decode()
    make_channel(acme, ChannelKind.WEBHOOK, "<b>on call</b>", url="https://a.example/")
    make_channel(acme, ChannelKind.WEBHOOK, "all hands", url="https://a.example/")
    page = client.get("/alerts/rules/new").content.decode()
    assert "None chosen: all channels" in page
    assert "&lt;b&gt;on call&lt;/b&gt;" in page
    assert "<b>on call</b>" not in page
    chosen = RULE | {"channels": ["<b>on call</b>"], "repeat_minutes": "60"}
    assert client.post("/alerts/rules/new", chosen | {"channels": ["gone"]}).status_code == 422
    listed = client.post("/alerts/rules/new", chosen, follow=True).content.decode()
    assert "Notifies &lt;b&gt;on call&lt;/b&gt;, again every 1 h" in listed
    with tenant_scope(acme.tenant.id):
        (stored,) = all_rules()
    address = f"/alerts/rules/{stored.id}"
    form = client.get(address).context["form"]
    assert (form["channels"].value(), form["repeat_minutes"].value()) == (("<b>on call</b>",), 60)
    client.post(address, RULE)
    with tenant_scope(acme.tenant.id):
        (stored,) = all_rules()
    assert (stored.channel_ids, stored.repeat_minutes) == ([], 0)


def test_an_alert_is_marked_on_charts(acme: Cast, globex: Cast) -> None:
    pk = fired_alert(acme, measure="p95", query="tool:get_weather", warning=None, alert=0)
    with tenant_scope(acme.tenant.id):
        Alert.objects.for_tenant(acme.tenant.id).update(held_from=datetime.now(UTC))
    link = f'href="/alerts/{pk}"'
    client = signed_in(acme.viewer)
    for address in ("/?range=24h", "/latency/?range=24h", "/latency/?range=24h&tool=get_weather"):
        assert link in client.get(address).content.decode(), address
    assert link not in client.get("/latency/?range=24h&tool=another").content.decode()
    assert link not in signed_in(globex.viewer).get("/?range=24h").content.decode()


def test_an_alert_says_when_people_were_notified(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    unsent = fired_alert(acme)
    assert "nobody: there was no channel" in text(client.get(f"/alerts/{unsent}").content.decode())
    make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    with tenant_scope(acme.tenant.id):
        for stored in all_rules():
            delete_rule(acme.tenant, acme.editor, stored, datetime.now(UTC))
        Alert.objects.for_tenant(acme.tenant.id).update(rule_name="before")
    sent = alert_of_stored_calls(acme)
    with tenant_scope(acme.tenant.id):
        alert = Alert.objects.for_tenant(acme.tenant.id).get(id=sent)
    assert alert.notified_at is not None
    page = text(client.get(f"/alerts/{sent}").content.decode())
    assert "nobody" not in page
    assert f"Notified {alert.notified_at:%Y-%m-%d %H:%M}" in page


def test_maintenance_windows_are_planned_and_deleted_on_their_page(acme: Cast) -> None:
    client = signed_in(acme.editor)
    client.post("/alerts/rules/new", RULE | {"act": "save"})
    form: dict[str, Any] = {
        "name": "backup",
        "reason": "nightly",
        "starts_at": "2026-01-05T02:00",
        "minutes": "60",
    }
    form |= {"repeats": "daily", "rules": ["weather fails"]}
    client.cookies["timezone"] = "Europe/Berlin"
    assert client.post("/alerts/maintenance/new", form).status_code == 302
    page = text(client.get("/alerts/maintenance/").content.decode())
    assert "every day by the clock of Europe/Berlin for 1 h weather fails" in page
    with tenant_scope(acme.tenant.id):
        (stored,) = all_windows()
    assert stored.starts_at == datetime(2026, 1, 5, 1, tzinfo=UTC)
    for wrong, why in (
        ({}, "Another maintenance window has this name."),
        ({"name": "x", "minutes": "10080"}, "It must be over before it begins again."),
        ({"name": "x", "starts_at": "soon"}, "Enter a valid date/time."),
        ({"name": "x", "reason": ""}, "This field is required."),
        ({"name": "x", "rules": ["another"]}, "another is not one of the available choices"),
    ):
        answer = client.post("/alerts/maintenance/new", form | wrong)
        assert answer.status_code == 422
        assert why in text(answer.content.decode())
        assert "nightly" in answer.content.decode(), "nothing that was entered is lost"
    assert client.post(f"/alerts/maintenance/{stored.id}/delete").status_code == 302
    assert "No maintenance windows" in client.get("/alerts/maintenance/").content.decode()
