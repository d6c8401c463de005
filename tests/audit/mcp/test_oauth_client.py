"""The official MCP client signs people in with a real OpenID provider, and asks `/mcp/<tenant>`."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import jwt
import pytest
import requests
from django.utils import timezone

from audit.work.mcp_uses import record_uses
from tenants.identity.providers import add_provider
from tenants.identity.wanted import Wanted
from tenants.models import Action, IdentityProvider, Membership, Role
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.identity.access_tokens import make_member
from tests.support.identity.real_provider import CLIENT, SECRET, RealProvider, real_provider
from tests.support.otlp.environment import FRAMEWORKS, frameworks_python
from tests.support.server import LiveServer, running_server

pytestmark = pytest.mark.slow
SCRIPT = FRAMEWORKS / "mcp_oauth_client.py"
CANARY = "payload5d20"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[RealProvider]:
    with real_provider(tmp_path) as one:
        one.redirect_uri = "http://127.0.0.1:1/unused"
        one.start()
        yield one


@pytest.fixture
def server(provider: RealProvider) -> Iterator[LiveServer]:
    with running_server(TOOLTRAIL_IDENTITY_ALLOW=f"127.0.0.1:{provider.port}") as one:
        yield one


@pytest.fixture
def row(acme: Cast, provider: RealProvider) -> IdentityProvider:
    """Acme's provider, which lets MCP clients read payloads."""
    wanted = Wanted(
        name="Acme ID",
        issuer=provider.issuer,
        client_id=CLIENT,
        secret=SECRET,
        mcp="payloads",
    )
    with tenant_scope(acme.tenant.pk):
        return add_provider(acme.tenant, acme.admin, wanted)


def sign_in(address: str, person: str) -> str:
    """Follow the provider's pages as this person, up to the address of the client."""
    browser = requests.Session()
    answer = browser.get(address, allow_redirects=False)
    for _ in range(20):
        if answer.is_redirect:
            target = urljoin(answer.url, answer.headers["Location"])
            if target.startswith("http://127.0.0.1:33418/"):
                return target
            answer = browser.get(target, allow_redirects=False)
            continue
        [action] = re.findall(r'<form[^>]*action="([^"]+)"', answer.text)
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', answer.text))
        given = {**hidden, "login": person, "password": "any"}
        answer = browser.post(urljoin(answer.url, unescape(action)), given, allow_redirects=False)
    raise AssertionError(f"no end at {answer.url}")


def ask_as(person: str, url: str, call_id: str) -> tuple[int, Any]:
    """What the official client finds for a person who signs in with the provider."""
    process = subprocess.Popen(
        [frameworks_python(), str(SCRIPT), url, call_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if address:
        back = sign_in(address, person)
        assert "code=" in back, back
        process.stdin.write(f"{back}\n")
        process.stdin.flush()
    out, errors = process.communicate(timeout=120)
    return process.returncode, json.loads(out) if process.returncode == 0 else errors


def test_official_client_signs_a_person_in(
    acme: Cast, row: IdentityProvider, server: LiveServer, provider: RealProvider
) -> None:
    ada = make_member(row, "ada", Role.EDITOR)
    make_member(row, "vic", Role.VIEWER)
    call = make_call(args={"q": CANARY})
    send_events(acme.tenant, call)
    url, pk = f"{server.url}/mcp/{acme.tenant.slug}", call[0]["invocation_id"]

    code, found = ask_as("ada", url, pk)
    assert code == 0, found
    assert len(found["tools"]) > 10
    assert not found["is_error"]
    assert CANARY in json.dumps(found["answer"])
    token = found["access_token"]
    assert jwt.get_unverified_header(token)["typ"] == "at+jwt"
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["aud"], claims["sub"], claims["scope"]) == (url, "ada", "read payloads")

    code, found = ask_as("vic", url, pk)
    assert code == 0, found
    assert CANARY not in json.dumps(found["answer"])

    code, errors = ask_as("eve", url, pk)  # she has never signed in here
    assert code != 0
    assert f"Sign in once at /sign-in/{acme.tenant.slug}" in errors

    record_uses(acme.tenant.id, timezone.now() + timedelta(minutes=3))
    with tenant_scope(acme.tenant.pk):
        uses = Action.objects.filter(tenant=acme.tenant, verb="mcp.use", user_id=ada.pk)
        assert [one.subject for one in uses] == ["get_call"]
        Membership.objects.filter(tenant=acme.tenant, user=ada).delete()
    headers = {"Authorization": f"Bearer {token}"}
    body: Any = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert requests.post(url, json=body, headers=headers, timeout=30).status_code == 403

    # After a new start the provider signs with another key.
    provider.start()
    refused = requests.post(url, json=body, headers=headers, timeout=30)
    assert refused.status_code in (401, 403)
    code, found = ask_as("vic", url, pk)
    assert code == 0, found
