"""Downloads that are sent while they are made: how many run at once."""

from uuid import uuid4

import pytest
from django.test import Client

from config.http import streams
from config.http.streams import STREAMS, STREAMS_OF_TENANT, TooManyStreamsError, stream
from tenants.keys import create_key
from tenants.models import Action, Scope, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_ingest_key, send_events
from tests.support.ledger_log import sign

EXPORTS = ("/calls/export.csv", "/inbox/export.ndjson", "/actions/export.csv")
DOWNLOADS = (*EXPORTS, "/tools/export.json", "/evidence/bundle.zip?range=24h")


@pytest.fixture(autouse=True)
def limits(any_number_of_downloads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAMS", STREAMS)
    monkeypatch.setattr(streams, "STREAMS_OF_TENANT", STREAMS_OF_TENANT)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_one_tenant_cannot_hold_all_threads_with_downloads(acme: Cast, globex: Cast) -> None:
    """48 exports of one tenant held every thread: all tenants' events waited for minutes."""
    send_events(acme.tenant, make_call(), key=make_ingest_key(acme.tenant))
    admin, other = browser(acme.admin), browser(globex.admin)
    scopes = [Scope.REGISTRY, Scope.PAYLOADS]
    key = create_key(acme.tenant, "all", scopes, created_by=acme.admin)[1]
    named = {"Authorization": f"Bearer {key}"}
    open_ = [admin.get("/tools/export.json") for _ in range(STREAMS_OF_TENANT)]
    assert [each.status_code for each in open_] == [200] * STREAMS_OF_TENANT
    for address in EXPORTS:
        refused = admin.get(address)
        assert (refused.status_code, refused["Retry-After"]) == (503, "10"), address
        assert "Try again when one is complete." in refused.content.decode()
    refused = Client().get("/api/v1/registry", headers=named)
    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    with tenant_scope(acme.tenant.id):
        recorded = set(Action.objects.filter(tenant=acme.tenant).values_list("verb", flat=True))
    assert "registry.export" in recorded
    assert recorded.isdisjoint({"call.export", "inbox.export", "action.export"})
    assert other.get("/calls/export.csv").status_code == 200, "of another tenant"
    assert open_[0].getvalue().endswith(b"}\n")
    again = admin.get("/calls/export.csv")
    assert again.getvalue().endswith(b"# count,1\r\n")


@pytest.mark.parametrize("address", DOWNLOADS)
def test_every_download_is_counted(acme: Cast, address: str) -> None:
    send_events(acme.tenant, make_call(), key=make_ingest_key(acme.tenant))
    sign(acme.tenant)  # else there is no bundle
    running = [stream(acme.tenant.id, iter([b"x"]), "text/plain") for _ in range(STREAMS_OF_TENANT)]
    admin = browser(acme.admin)
    assert admin.get(address).status_code == 503
    for each in running:
        each.close()
    assert admin.get(address).status_code == 200


def test_streams_of_all_tenants_leave_threads_for_the_rest(acme: Cast, globex: Cast) -> None:
    ids = [acme.tenant.id] * STREAMS_OF_TENANT
    ids += [globex.tenant.id] * (STREAMS - STREAMS_OF_TENANT)
    running = [stream(each, iter([b"x"]), "text/plain") for each in ids]
    with pytest.raises(TooManyStreamsError):
        stream(uuid4(), iter([b"x"]), "text/plain")
    running.pop().close()
    stream(globex.tenant.id, iter([b"x"]), "text/plain").close()
