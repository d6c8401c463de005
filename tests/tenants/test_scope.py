"""The tenant scope: which rows are visible inside it, outside it, and after it."""

import os
import socket
import threading
import uuid
from contextlib import ExitStack, suppress
from typing import Any, cast

import psycopg
import pytest
from django.db import connection, transaction

from tenants.models import Membership
from tenants.scope import TenantScopeError, current_tenant_id, tenant_scope, user_scope
from tests.support.factories import Cast


def test_scope_shows_only_rows_of_its_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        seen = set(Membership.objects.values_list("tenant_id", flat=True))
    assert seen == {acme.tenant.id}


def test_nothing_is_visible_outside_a_scope(acme: Cast) -> None:
    assert Membership.objects.filter(tenant=acme.tenant).count() == 0


def test_scope_ends_on_the_same_connection(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        assert Membership.objects.exists()
    assert not Membership.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('tooltrail.tenant_id', true)")
        assert cursor.fetchone()[0] in (None, "")


def test_row_of_another_tenant_cannot_be_written(acme: Cast, globex: Cast) -> None:
    from django.db.utils import ProgrammingError

    with pytest.raises(ProgrammingError, match="row-level security"), tenant_scope(acme.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.viewer, role="admin")


def test_scopes_of_the_same_tenant_can_be_nested(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id), tenant_scope(acme.tenant.id):
        assert current_tenant_id() == acme.tenant.id


def test_scopes_of_different_tenants_cannot_be_nested(acme: Cast, globex: Cast) -> None:
    with (
        tenant_scope(acme.tenant.id),
        pytest.raises(TenantScopeError),
        tenant_scope(globex.tenant.id),
    ):
        pass


def test_scope_cannot_open_inside_a_transaction(acme: Cast) -> None:
    with transaction.atomic(), pytest.raises(TenantScopeError), tenant_scope(acme.tenant.id):
        pass


def test_string_is_rejected_as_tenant_id() -> None:
    with pytest.raises(TypeError), tenant_scope("x'; RESET ALL; --"):  # type: ignore[arg-type]  # what mypy would refuse
        pass


def test_current_tenant_requires_a_scope() -> None:
    with pytest.raises(TenantScopeError):
        current_tenant_id()


def test_exception_rolls_back_the_scope(acme: Cast) -> None:
    with pytest.raises(ZeroDivisionError), tenant_scope(acme.tenant.id):
        Membership.objects.filter(user=acme.viewer).delete()
        raise ZeroDivisionError
    with tenant_scope(acme.tenant.id):
        assert Membership.objects.filter(user=acme.viewer).exists()


def test_user_scope_shows_own_memberships_in_every_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.viewer, role="viewer")
    with user_scope(acme.viewer.pk):
        seen = set(Membership.objects.values_list("tenant_id", "user_id"))
    assert seen == {(acme.tenant.id, acme.viewer.pk), (globex.tenant.id, acme.viewer.pk)}


def test_unknown_tenant_has_no_rows() -> None:
    with tenant_scope(uuid.uuid4()):
        assert not Membership.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("is_good", [True, False])
def test_pipeline_with_many_megabytes_does_not_deadlock(acme: Cast, is_good: bool) -> None:
    """Commit and rollback only read while a part was still to be written: both sides waited."""
    connection.ensure_connection()
    raw = cast(psycopg.Connection[Any], connection.connection)
    line = socket.socket(fileno=os.dup(raw.fileno()))
    hang_up = threading.Timer(20, line.shutdown, [socket.SHUT_RDWR])
    hang_up.start()
    try:
        with (
            suppress(ZeroDivisionError),
            ExitStack() as pipeline,
            tenant_scope(acme.tenant.id, pipeline=pipeline),
        ):
            sent = psycopg.RawCursor(raw)
            sent.execute(b"SELECT length($1::bytea)", [bytes(32 * 1024 * 1024)], binary=True)
            if not is_good:
                raise ZeroDivisionError
    finally:
        hang_up.cancel()
        line.close()
    assert connection.connection is raw
    assert not raw.closed
