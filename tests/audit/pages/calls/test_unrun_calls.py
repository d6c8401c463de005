"""Calls that did not run: on their page, in the timeline and over the API."""

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.pages import signed_in, text


@pytest.mark.parametrize("ran", [False, True])
def test_decision_with_required_members_alone_is_shown(acme: Cast, ran: bool) -> None:
    """No reason, no decider, no digest: each of them is optional."""
    event = make_decision("approved", trace_id="t")
    started = make_call(invocation_id=event["invocation_id"], trace_id="t") if ran else []
    send_events(acme.tenant, [event, *started])
    day = event["decided_at"][:10]
    for member in (acme.editor, acme.viewer):
        for path in (f"/calls/{day}/{event['invocation_id']}", "/traces/t"):
            answer = signed_in(member).get(path)
            assert answer.status_code == 200, path
            assert "approved" in text(answer.content.decode())


@pytest.mark.parametrize("state", ["refused", "awaiting", "approved"])
def test_api_answers_about_calls_that_did_not_run(acme: Cast, state: str) -> None:
    event = make_decision("denied" if state == "refused" else state, trace_id="t")
    send_events(acme.tenant, [event])
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"authorization": f"Bearer {key}"}
    for path in (f"calls?q=state:{state}", "traces/t"):
        answer = Client().get(f"/api/v1/{path}", headers=headers)
        assert answer.status_code == 200, (path, answer.content)
        assert [call["state"] for call in answer.json()["calls"]] == [state]
