"""Provisioning tenants and members from outside; repeating it changes nothing."""

import secrets
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tenants.models import Membership, Role, Tenant
from tenants.provision import ensure_member, ensure_tenant
from tenants.scope import tenant_scope


def _run(*arguments: str) -> str:
    out = StringIO()
    call_command("tenant", *arguments, stdout=out)
    return out.getvalue()


def test_ensure_is_idempotent() -> None:
    slug = f"demo-{secrets.token_hex(4)}"
    first, second = ensure_tenant(slug, "Demo"), ensure_tenant(slug, "Other")
    assert (first.pk, second.name) == (second.pk, "Demo")
    users = {ensure_member(first, slug, "s3cret phrase", Role.EDITOR).pk for _ in range(2)}
    assert len(users) == 1
    assert Client().login(username=slug, password="s3cret phrase")
    ensure_member(first, slug, role=Role.VIEWER, is_staff=False)
    assert Client().login(username=slug, password="s3cret phrase"), "no password given, none set"
    with tenant_scope(first.id):
        assert [one.role for one in Membership.objects.all()] == ["viewer"]


@pytest.mark.parametrize("slug", ["", "A", "a b", "x" * 64, "ü"])
def test_invalid_slug_is_rejected(slug: str) -> None:
    with pytest.raises(ValueError, match="slug"):
        ensure_tenant(slug, "X")


@pytest.mark.slow
def test_operator_creates_and_lists_tenants() -> None:
    name = f"Initech {secrets.token_hex(4)}"
    tenant_id = UUID(_run("create", name, "--admin", name.replace(" ", "-")).strip())
    tenant = Tenant.objects.get(pk=tenant_id)
    assert (tenant.name, tenant.slug) == (name, name.lower().replace(" ", "-"))
    assert f"{tenant_id}  {tenant.slug}  {name}" in _run("list").splitlines()
    with pytest.raises(CommandError, match="taken"):
        _run("create", name)
    with tenant_scope(tenant_id):
        assert [one.role for one in Membership.objects.all()] == ["admin"]
