"""Alerts over the API: rules as code, the list, and answers to alerts."""

import json
from typing import Any

from django.test import Client

from audit.alerts.maintenance import Maintenance
from audit.alerts.rules import Rule
from audit.alerts.starter import starter_rules
from audit.models import ChannelKind
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.alerts import fired_alert
from tests.support.deliveries import make_channel
from tests.support.factories import Cast

RULE = {"name": "fails", "condition": {"measure": "failed_share", "warning": 5, "alert": 20}}
EVENT = {"name": "inbox", "condition": {"on": "event", "event": "inbox_waiting"}}


class Api:
    """A client with a key that reads and edits alerts."""

    def __init__(self, cast: Cast, *scopes: Scope) -> None:
        key = create_key(cast.tenant, "terraform", list(scopes or (Scope.READ, Scope.OPERATE)))[1]
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.client.generic(
            method, f"/api/v1/{path}", content, content_type="application/json"
        )
        return answer.status_code, answer.json()


def rule_actions(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant_id=cast.tenant.id, verb__startswith="alert_rule.")
        return list(actions.order_by("at", "id").values_list("verb", flat=True))


def test_rules_are_saved_as_code_and_saving_them_again_changes_nothing(
    acme: Cast, globex: Cast
) -> None:
    api = Api(acme)
    body = {"rules": [RULE, EVENT]}
    status, saved = api.send("PUT", "alert-rules", body)
    assert status == 200
    assert [one["name"] for one in saved["rules"]] == ["fails", "inbox"]
    assert saved["rules"][0]["condition"]["window_minutes"] == 60
    assert api.send("PUT", "alert-rules", body) == (200, saved)
    assert rule_actions(acme) == ["alert_rule.create"] * 2

    document = [{key: one[key] for key in Rule.model_fields} for one in saved["rules"]]
    assert api.send("PUT", "alert-rules", {"rules": document}) == (200, saved)
    changed = {**RULE, "condition": {**RULE["condition"], "alert": 30}}  # type: ignore[dict-item]  # a dict of members
    status, after = api.send("PUT", "alert-rules", {"rules": [changed]})
    assert (status, len(after["rules"])) == (200, 2)
    assert after["rules"][0]["condition"]["alert"] == 30
    assert api.send("GET", "alert-rules") == (200, after)
    pk = after["rules"][0]["id"]
    assert Api(globex).send("DELETE", f"alert-rules/{pk}")[0] == 404
    assert api.send("DELETE", f"alert-rules/{pk}")[0] == 200
    assert [one["name"] for one in api.send("GET", "alert-rules")[1]["rules"]] == ["inbox"]
    assert rule_actions(acme) == [
        *["alert_rule.create"] * 2,
        "alert_rule.change",
        "alert_rule.delete",
    ]


def test_channels_of_a_rule_are_named(acme: Cast, globex: Cast) -> None:
    make_channel(acme, ChannelKind.WEBHOOK, "on call", url="https://a.example/")
    make_channel(acme, ChannelKind.WEBHOOK, "all hands", url="https://a.example/")
    make_channel(globex, ChannelKind.WEBHOOK, "theirs", url="https://a.example/")
    api = Api(acme)
    rule = {**RULE, "channels": ["on call", "all hands", "on call"], "repeat_minutes": 60}
    status, saved = api.send("PUT", "alert-rules", {"rules": [rule]})
    assert status == 200
    assert saved["rules"][0]["channels"] == ["all hands", "on call"]
    assert saved["rules"][0]["repeat_minutes"] == 60
    assert api.send("PUT", "alert-rules", {"rules": [rule]}) == (200, saved)
    assert rule_actions(acme) == ["alert_rule.create"]
    for wrong, code in (
        ({"channels": ["theirs"]}, "invalid"),
        ({"channels": ["on call", ""]}, "invalid"),
        ({"channels": [str(n) for n in range(21)]}, "malformed"),
        ({"channels": "on call"}, "malformed"),
        ({"repeat_minutes": 14}, "malformed"),
        ({"repeat_minutes": -15}, "malformed"),
        ({"repeat_minutes": 10_081}, "malformed"),
    ):
        body = {"rules": [{**EVENT, "channels": ["on call"]}, {**RULE, **wrong}]}
        assert api.send("PUT", "alert-rules", body)[1]["code"] == code, wrong
    assert api.send("GET", "alert-rules") == (200, saved), "nothing was saved"
    status, after = api.send("PUT", "alert-rules", {"rules": [RULE]})
    assert (after["rules"][0]["channels"], after["rules"][0]["repeat_minutes"]) == ([], 0)


def test_one_invalid_rule_saves_nothing(acme: Cast) -> None:
    api = Api(acme)
    for body, why in (
        ({"rules": [RULE, {"name": "x", "condition": {"measure": "gold", "alert": 1}}]}, "measure"),
        ({"rules": [{**RULE, "condition": {"measure": "calls"}}]}, "Enter a threshold"),
        ({"rules": [{**RULE, "colour": "red"}]}, "colour"),
        ({"rules": []}, "rules"),
        ({}, "rules"),
        ([RULE], "The body is not valid JSON"),
        (b"{", "The body is not valid JSON"),
        (b"[" * 100_000, "The body is not valid JSON"),
        ({"rules": [{**RULE, "condition": {"on": "weather"}}]}, "on"),
    ):
        status, problem = api.send("PUT", "alert-rules", body)
        assert (status, problem["code"]) == (400, "malformed"), body
        assert why in problem["detail"]
    assert api.send("GET", "alert-rules")[1]["items"] == []
    assert Api(acme, Scope.READ).send("PUT", "alert-rules", {"rules": [RULE]})[0] == 403
    assert Api(acme, Scope.REGISTRY).send("PUT", "alert-rules", {"rules": [RULE]})[0] == 403


def test_alerts_are_listed_acknowledged_and_resolved(acme: Cast, globex: Cast) -> None:
    api = Api(acme)
    pk = str(fired_alert(acme))
    status, page = api.send("GET", "alerts")
    assert status == 200 and page["next"] is None
    (alert,) = page["alerts"]
    assert (alert["id"], alert["state"], alert["rule"]) == (pk, "open", "many calls")
    assert alert["value"] == 1 and alert["threshold"] == 0
    assert api.send("GET", f"alerts/{pk}") == (200, alert)
    assert api.send("POST", f"alerts/{pk}/acknowledge", {"note": " "})[0] == 400
    status, acknowledged = api.send("POST", f"alerts/{pk}/acknowledge", {"note": "on it"})
    assert (status, acknowledged["state"]) == (200, "acknowledged")
    assert "terraform" in acknowledged["acknowledged_by"]
    again = api.send("POST", f"alerts/{pk}/acknowledge", {"note": "again"})
    assert again == (200, acknowledged)
    assert api.send("POST", f"alerts/{pk}/resolve", {"note": "over"})[1]["state"] == "resolved"
    assert api.send("GET", "alerts")[1]["alerts"] == []
    assert len(api.send("GET", "alerts?state=all")[1]["alerts"]) == 1
    assert api.send("GET", "alerts?state=all&rule=other")[1]["alerts"] == []
    assert api.send("GET", "alerts?cursor=nonsense")[0] == 422
    stranger = Api(globex)
    assert stranger.send("GET", f"alerts/{pk}")[0] == 404
    assert stranger.send("POST", f"alerts/{pk}/resolve", {"note": "x"})[0] == 404


def test_the_starter_set_can_be_sent(acme: Cast) -> None:
    rules = [one.model_dump(mode="json") for one in starter_rules()]
    status, saved = Api(acme).send("PUT", "alert-rules", {"rules": rules})
    assert (status, len(saved["rules"])) == (200, len(rules))


def test_maintenance_windows_are_saved_as_code(acme: Cast, globex: Cast) -> None:
    api = Api(acme)
    window: dict[str, Any] = {
        "name": "backup",
        "reason": "nightly",
        "starts_at": "2026-01-01T01:00:00+01:00",
    }
    window |= {"minutes": 60, "repeats": "daily", "time_zone": "Europe/Berlin"}
    status, saved = api.send("PUT", "maintenance-windows", {"windows": [window]})
    assert status == 200
    (one,) = saved["items"]
    assert (one["starts_at"], one["rules"]) == ("2026-01-01T00:00:00Z", [])
    document = {key: one[key] for key in Maintenance.model_fields}
    assert api.send("PUT", "maintenance-windows", {"windows": [document]}) == (200, saved)
    for wrong, code in (
        ({"rules": ["nothing"]}, "invalid"),
        ({"minutes": 1}, "malformed"),
        ({"time_zone": "Nowhere"}, "malformed"),
        ({"starts_at": "then"}, "malformed"),
        ({"colour": "red"}, "malformed"),
    ):
        body = {"windows": [{**window, "name": "other"}, {**window, **wrong}]}
        assert api.send("PUT", "maintenance-windows", body)[1]["code"] == code, wrong
    assert api.send("GET", "maintenance-windows") == (200, saved), "nothing was saved"
    assert Api(acme, Scope.READ).send("PUT", "maintenance-windows", {})[0] == 403
    path = f"maintenance-windows/{one['id']}"
    assert Api(globex).send("DELETE", path)[0] == 404
    assert api.send("DELETE", path) == (200, one)
    assert api.send("GET", "maintenance-windows")[1] == {"items": [], "next": None}
