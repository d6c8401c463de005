"""People whom a provider signed in confirm with it that it is they, before a reveal."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from tenants.identity.providers import add_provider
from tenants.identity.wanted import Wanted
from tenants.models import Action, IdentityProvider, ProviderKind, Role, Tenant
from tenants.scope import tenant_scope
from tests.isolation.world import World, make_world
from tests.support.factories import Cast
from tests.support.identity.hostile_provider import CLIENT, HostileProvider
from tests.support.identity.saml_provider import ENTITY_ID, SSO_URL, Request, SamlProvider
from tests.support.identity.visits import (
    come_back,
    come_back_by_saml,
    last_refusal,
    leave,
    sign_in_with,
)
from tests.support.pages import signed_in

CONFIRM = reverse("provider_confirm")


@pytest.fixture
def world() -> World:
    one = make_world("confirm")
    Tenant.objects.filter(pk=one.tenant.pk).update(step_up=True)
    return one


def owners(world: World, **more: Any) -> IdentityProvider:
    """A provider whose staff are admins."""
    wanted = Wanted(name="Acme ID", role_by_group={"staff": Role.ADMIN}, **more)
    with tenant_scope(world.tenant.pk):
        return add_provider(world.tenant, world.admin, wanted)


def by_openid(world: World, provider: HostileProvider) -> IdentityProvider:
    return owners(world, issuer=provider.issuer, client_id=CLIENT)


def reveal_of(world: World) -> str:
    return f"/calls/{world.at.date()}/{world.call_id}/reveal"


def reveals(world: World) -> list[str]:
    with tenant_scope(world.tenant.id):
        actions = Action.objects.filter(tenant=world.tenant, verb="call.reveal").order_by("at")
        return [one.details["reason"] for one in actions]


def asked(client: Client, world: World, reason: str = "Case 4711") -> str:
    """The page that a reveal leads to."""
    answer = client.post(reveal_of(world), {"reason": reason})
    assert answer.status_code == 302
    return str(answer["Location"])


def leave_again(client: Client, page: str) -> str:
    """Press the button of that page; returns the address that it goes on to."""
    shown = client.get(page)
    assert "asks again" in shown.content.decode()
    answer = client.post(page, {"next": shown.context["target"]})
    return str(answer.context["address"])


def test_request_is_repeated_after_the_provider_asked_again(
    world: World, provider: HostileProvider
) -> None:
    row, client = by_openid(world, provider), Client()
    sign_in_with(client, row, provider)
    page = asked(client, world)
    assert page == f"{CONFIRM}?next={reveal_of(world).replace('/', '%2F')}"
    address = leave_again(client, page)
    query = parse_qs(urlsplit(address).query)
    assert (query["max_age"], query["prompt"]) == (["0"], ["login"])
    provider.claims = {"auth_time": int(time.time())}
    back = come_back(client, row, provider.authorize(address))
    assert reveals(world) == []
    done = client.get(back["Location"])
    assert done["Location"] == reveal_of(world).removesuffix("/reveal")
    assert reveals(world) == ["Case 4711"]
    with tenant_scope(world.tenant.id):
        action = Action.objects.get(tenant=world.tenant, verb="session.confirm")
    assert action.details["provider"] == "Acme ID"
    # For five minutes nothing is asked, and then it is asked again.
    assert not asked(client, world, "again").startswith(CONFIRM)
    stored = client.session
    stored["provider_confirmed_at"] -= 301
    stored.save()
    assert asked(client, world, "later").startswith(CONFIRM)


def an_hour_ago(_: World) -> dict[str, Any]:
    return {"auth_time": int(time.time()) - 3_600}


def without_time(_: World) -> dict[str, Any]:
    return {"auth_time": None}


def time_as_text(_: World) -> dict[str, Any]:
    return {"auth_time": "now"}


def another_person(_: World) -> dict[str, Any]:
    return {"auth_time": int(time.time()), "sub": "eve"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        (an_hour_ago, "did not ask again"),
        (without_time, "did not ask again"),
        (time_as_text, "did not ask again"),
        (another_person, "another person"),
    ],
)
def test_answer_that_confirms_nothing_is_refused(
    world: World,
    provider: HostileProvider,
    claims: Callable[[World], dict[str, Any]],
    reason: str,
) -> None:
    row, client = by_openid(world, provider), Client()
    sign_in_with(client, row, provider)
    address = leave_again(client, asked(client, world))
    provider.claims = claims(world)
    back = come_back(client, row, provider.authorize(address))
    assert back["Location"] == reverse("home")
    assert reason in last_refusal(row)
    assert client.get(reverse("home")).status_code == 200  # the session goes on
    assert asked(client, world).startswith(CONFIRM)
    assert reveals(world) == []


def test_sign_in_alone_confirms_nothing(world: World, provider: HostileProvider) -> None:
    row, client = by_openid(world, provider), Client()
    provider.claims = {"auth_time": int(time.time())}
    sign_in_with(client, row, provider)
    assert asked(client, world).startswith(CONFIRM)
    assert reveals(world) == []


@pytest.mark.parametrize("is_fresh", [True, False])
def test_saml_provider_is_asked_to_ask_again(world: World, is_fresh: bool) -> None:
    provider, client = SamlProvider(), Client()
    certificates = (provider.keys.certificate,)
    row = owners(
        world,
        kind=ProviderKind.SAML,
        issuer=ENTITY_ID,
        sso_url=SSO_URL,
        certificates=certificates,
    )
    first = leave(client, row)
    assert not Request.at(first).asks_again
    come_back_by_saml(client, row, provider.answer(first))
    address = leave_again(client, asked(client, world))
    assert Request.at(address).asks_again
    if not is_fresh:
        provider.before = lambda xml: xml.replace(
            'AuthnInstant="20', 'AuthnInstant="19'
        )  # the session of long ago
    back = come_back_by_saml(client, row, provider.answer(address))
    if is_fresh:
        client.get(back["Location"])
        assert reveals(world) == ["Case 4711"]
    else:
        assert "did not ask again" in last_refusal(row)
        assert reveals(world) == []


def test_page_is_only_for_sessions_of_providers(acme: Cast) -> None:
    assert signed_in(acme.admin).get(CONFIRM).status_code == 404
    assert Client().get(CONFIRM).status_code == 302
