"""A fresh confirmation before reveals, erasures and releases of holds, if the tenant asks."""

from collections.abc import Callable

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Action, Scope, Tenant
from tenants.scope import tenant_scope
from tests.isolation.world import World, make_world
from tests.support.api_client import Program
from tests.support.factories import PASSWORD

ACTS: dict[str, tuple[Callable[[World], str], str, Scope]] = {
    "reveal of a call": (
        lambda world: f"/calls/{world.at.date()}/{world.call_id}/reveal",
        "calls/{0.call_id}/reveal",
        Scope.REVEAL,
    ),
    "reveal of a rejected event": (
        lambda world: f"/inbox/{world.refused_id}/reveal",
        "inbox/{0.refused_id}/reveal",
        Scope.REVEAL,
    ),
    "erasure": (
        lambda world: f"/settings/erasures/{world.erasure_id}/confirm",
        "erasures/{0.erasure_id}/confirm",
        Scope.ERASE,
    ),
    "approval of a lower floor": (
        lambda world: f"/settings/floor/{world.floor_request_id}/approve",
        "floor/requests/{0.floor_request_id}/approve",
        Scope.ADMIN,
    ),
    "release of a hold": (
        lambda world: f"/settings/holds/{world.hold_id}/release",
        "holds/{0.hold_id}/release",
        Scope.HOLDS,
    ),
}


def world_with_step_up() -> World:
    world = make_world("stepup")
    Tenant.objects.filter(pk=world.tenant.pk).update(step_up=True)
    return world


def verbs(world: World) -> set[str]:
    with tenant_scope(world.tenant.id):
        return set(Action.objects.filter(tenant=world.tenant).values_list("verb", flat=True))


@pytest.mark.parametrize("act", ACTS)
def test_person_confirms_first(act: str) -> None:
    world = world_with_step_up()
    client = Client()
    client.force_login(world.admin)
    answer = client.post(ACTS[act][0](world), {"reason": "Case 4711"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/settings/security/confirm?next=")


@pytest.mark.parametrize("act", ACTS)
def test_key_alone_cannot(act: str) -> None:
    world = world_with_step_up()
    _, path, scope = ACTS[act]
    with tenant_scope(world.tenant.id):
        _, key = create_key(world.tenant, "program", [scope])
    body = {"reason": "Case 4711"}
    assert Program(world.tenant, key).refused(path.format(world), body) == (403, "needs_person")


def test_request_is_repeated_after_the_confirmation_and_holds_for_five_minutes() -> None:
    world = world_with_step_up()
    world.admin.set_password(PASSWORD)
    world.admin.save()
    client = Client()
    client.force_login(world.admin)
    reveal = ACTS["reveal of a call"][0](world)
    asked = client.post(reveal, {"reason": "Case 4711"})
    assert "call.reveal" not in verbs(world)
    wrong = client.post(asked["Location"], {"password": "wrong"})
    assert wrong.status_code == 200
    assert "call.reveal" not in verbs(world)
    done = client.post(asked["Location"], {"password": PASSWORD})
    assert done["Location"] == reveal.removesuffix("/reveal")
    with tenant_scope(world.tenant.id):
        action = Action.objects.get(tenant=world.tenant, verb="call.reveal")
    assert action.details["reason"] == "Case 4711"
    # Within five minutes nothing is asked.
    again = client.post(f"/inbox/{world.refused_id}/reveal", {"reason": "Case 4711"})
    assert not again["Location"].startswith("/settings/security")
    stored = client.session
    for method in stored["account_authentication_methods"]:
        method["at"] -= 301
    stored.save()
    again = client.post(reveal, {"reason": "Case 4712"})
    assert again["Location"].startswith("/settings/security/confirm?next=")
