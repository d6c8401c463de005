"""A suspended tenant is closed; of a deleted tenant only its tombstone remains."""

import io
import json
from datetime import timedelta
from hashlib import sha256
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connections
from django.utils import timezone
from tooltrail.ledger import root_of

from audit.models import Batch
from tenants import deletion
from tenants.deletion import delete_tenant
from tenants.keys import create_key
from tenants.models import Action, Scope, Tenant, Tombstone
from tenants.scope import tenant_scope
from tests.isolation.world import make_world, tenant_tables
from tests.support.event_requests import lines, post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import signed_in


def run(*arguments: str) -> Any:
    out = io.StringIO()
    call_command("tenant", *arguments, "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue())


def rows_of(tenant_id: UUID) -> dict[str, int]:
    counts = {}
    with connections["owner"].cursor() as cursor:
        for table in tenant_tables():
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE tenant_id = %s', [tenant_id])
            counts[table] = cursor.fetchone()[0]
    return {table: count for table, count in counts.items() if count}


def long_suspended(tenant: Tenant) -> Tenant:
    """So that nobody has to be waited for."""
    tenant.suspended_at = timezone.now() - timedelta(hours=1)
    tenant.save(update_fields=["suspended_at"])
    return tenant


def test_suspended_tenant_rejects_events_and_pages_until_resumed(acme: Cast) -> None:
    _, key = create_key(acme.tenant, "ci", [Scope.INGEST])
    client = signed_in(acme.admin)
    assert run("suspend", acme.tenant.slug)["state"] == "suspended"
    first = Tenant.objects.get(pk=acme.tenant.pk).suspended_at
    run("suspend", acme.tenant.slug)
    assert Tenant.objects.get(pk=acme.tenant.pk).suspended_at == first
    answer = post(key, lines(make_call()))
    assert answer.status_code == 403
    assert b"suspended" in answer.content
    assert client.get("/").status_code == 403
    assert run("resume", acme.tenant.slug)["state"] == "active"
    assert client.get("/").status_code == 200
    assert post(key, lines(make_call())).status_code == 200
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(verb__startswith="tenant.").order_by("at")
        assert [each.verb for each in actions] == ["tenant.suspend", "tenant.resume"]
        assert all(each.user_name.startswith("operator") for each in actions)


@pytest.mark.slow
def test_deletion_removes_all_rows_of_the_tenant_only() -> None:
    world, other = make_world("doomed"), make_world("other")
    send_events(world.tenant, [event for _ in range(3) for event in make_call()])
    with tenant_scope(world.tenant.id):
        batches = Batch.objects.for_tenant(world.tenant.id).order_by("first_index", "event_count")
        leaves = b"".join(bytes(each.leaves) for each in batches)
    other_rows = rows_of(other.tenant.pk)
    assert set(rows_of(world.tenant.pk)) == set(tenant_tables())
    long_suspended(world.tenant)
    stone = run("delete", world.tenant.slug, "--yes", world.tenant.name)
    assert stone["state"] == "deleted"
    assert rows_of(world.tenant.pk) == {}
    assert rows_of(other.tenant.pk) == other_rows
    assert not Tenant.objects.filter(pk=world.tenant.pk).exists()
    assert stone["ledger_size"] * 32 <= len(leaves)
    assert stone in run("list", "--deleted")
    assert world.tenant.slug not in {each["slug"] for each in run("list")}
    with pytest.raises(CommandError, match="unknown tenant"):
        run("delete", world.tenant.slug, "--yes", world.tenant.name)
    assert signed_in(world.admin).get("/").status_code == 403


@pytest.mark.slow
def test_tombstone_contains_the_root_of_the_whole_ledger(acme: Cast) -> None:
    for count in (1, 3, 2):
        send_events(acme.tenant, [event for _ in range(count) for event in make_call()])
    with tenant_scope(acme.tenant.id):
        batches = Batch.objects.for_tenant(acme.tenant.id).order_by("first_index")
        joined = b"".join(bytes(each.leaves) for each in batches)
    leaves = [joined[at : at + 32] for at in range(0, len(joined), 32)]
    stone = delete_tenant(long_suspended(acme.tenant), "operator", lambda done, size: None)
    assert stone.ledger_size == 12
    assert bytes(stone.ledger_root) == _by_the_book(leaves)


def _by_the_book(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\x01" + _by_the_book(leaves[:k]) + _by_the_book(leaves[k:])).digest()


@pytest.mark.parametrize("size", [*range(18), 100])
def test_root_matches_rfc_6962(size: int) -> None:
    leaves = [sha256(bytes([number])).digest() for number in range(size)]
    assert root_of(iter(leaves)) == _by_the_book(leaves)


@pytest.mark.slow
def test_interrupted_deletion_is_resumed(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    send_events(acme.tenant, [event for _ in range(5) for event in make_call()])
    long_suspended(acme.tenant)
    monkeypatch.setattr(deletion, "_ROWS", 2)

    def interrupted(done: int, size: int) -> None:
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        delete_tenant(acme.tenant, "first", interrupted)
    half = Tombstone.objects.get(pk=acme.tenant.pk)
    assert (half.ended_at, half.ledger_size) == (None, 10)
    assert run("list", "--deleted")
    states = {each["slug"]: each["state"] for each in run("list")}
    assert states[acme.tenant.slug] == "being deleted"
    with pytest.raises(CommandError, match="being deleted"):
        run("resume", acme.tenant.slug)
    seen = []
    stone = delete_tenant(acme.tenant, "second", lambda done, size: seen.append((done, size)))
    assert stone.ended_at is not None
    assert (stone.operator, stone.ledger_size) == ("first", 10)
    assert seen[-1][0] == seen[-1][1] > 0
    assert rows_of(acme.tenant.pk) == {}


@pytest.mark.parametrize("given", ["", "acme", "ACME"])
def test_wrong_confirmation_name_deletes_nothing(acme: Cast, given: str) -> None:
    with pytest.raises(CommandError, match="nothing was deleted"):
        run("delete", acme.tenant.slug, "--yes", given)
    assert not Tombstone.objects.filter(pk=acme.tenant.pk).exists()
    assert Tenant.objects.get(pk=acme.tenant.pk).suspended_at is None


@pytest.mark.slow
def test_deletion_prompts_for_the_name(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    long_suspended(acme.tenant)
    monkeypatch.setattr("builtins.input", lambda prompt: "something else")
    with pytest.raises(CommandError, match="nothing was deleted"):
        run("delete", acme.tenant.slug)

    def at_the_end(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", at_the_end)
    with pytest.raises(CommandError, match="--yes"):
        run("delete", acme.tenant.slug)
    monkeypatch.setattr("builtins.input", lambda prompt: acme.tenant.name)
    assert run("delete", acme.tenant.slug)["state"] == "deleted"


@pytest.mark.slow
def test_deletion_waits_until_cached_keys_expire(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("tenants.deletion.time", Mock(sleep=waited.append))
    delete_tenant(acme.tenant, "operator", lambda done, size: None)
    assert 5 < waited[0] <= 6


def test_deletion_fails_while_rows_of_the_tenant_remain(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tenant's row goes last, and not while anything refers to it."""
    send_events(acme.tenant, make_call(), key=make_ingest_key(acme.tenant))
    long_suspended(acme.tenant)
    monkeypatch.setattr(deletion, "_tables", lambda: iter(["invocation"]))
    with pytest.raises(IntegrityError):
        delete_tenant(acme.tenant, "operator", lambda done, size: None)
    assert Tenant.objects.filter(pk=acme.tenant.pk).exists()
