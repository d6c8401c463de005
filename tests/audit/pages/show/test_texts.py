"""Lists that show texts of payloads leave one action for each member, list and hour."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from tenants.models import Action, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in

FAILURE = {"status": "error", "error": {"message": "no Ada", "type": "upstream", "code": "404"}}


def read(cast: Cast, user: User) -> list[tuple[str, str]]:
    """Open each list twice; who then read which."""
    paths = [reverse("call_list"), reverse("trace_list"), "/", "/violations/"]
    paths += [f"/traces/{trace}{page}" for trace in ("t1", "t2") for page in ("", "/text")]
    for path in paths * 2:
        assert signed_in(user).get(path).status_code == 200, path
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant=cast.tenant, verb="text.view")
        return sorted(actions.values_list("user_name", "subject"))


@pytest.mark.slow
def test_lists_with_texts_are_recorded_once_an_hour(acme: Cast) -> None:
    ok = [*make_call(trace_id="t1"), *make_call(trace_id="t2")]
    send_events(acme.tenant, ok)
    assert read(acme, acme.editor) == [], "nothing was shown"
    wrong = {"path": "$.unit", "severity": "error", "code": "ENUM_MISMATCH", "expected": "'c'"}
    violations = [wrong | {"received": "'Ada'"}]
    guard = {"strategy": "warn", "outcome": "passed", "violations": violations}
    for trace in ("t1", "t2"):
        failed = make_call(trace_id=trace, is_error=True, output=FAILURE)
        send_events(acme.tenant, [*failed, *make_call(trace_id=trace, guard=guard)])
    assert read(acme, acme.viewer) == [], "viewers see no texts"
    assert read(acme, acme.auditor) == [], "an auditor reveals them one by one"
    began = datetime.now(UTC)
    recorded = set(read(acme, acme.editor))
    lists = {"calls", "calls of a trace", "overview", "traces", "violations"}
    assert {of for _, of in recorded} == lists
    if datetime.now(UTC).hour == began.hour:
        assert len(read(acme, acme.editor)) == len(lists)
