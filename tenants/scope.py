"""The tenant scope: the only way to access a tenant's rows.

Row-level security compares every row's tenant with the transaction's setting
`tooltrail.tenant_id`. Without the setting no row matches. Only this module writes it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, cast
from uuid import UUID

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction

from config.postgresql.base import DatabaseWrapper

_open_tenant: ContextVar[UUID | None] = ContextVar("open_tenant", default=None)


class TenantScopeError(RuntimeError):
    """A scope was opened inside a transaction, or inside another tenant's scope."""


@contextmanager
def tenant_scope(
    tenant_id: UUID,
    *,
    user_id: int | None = None,
    using: str = DEFAULT_DB_ALIAS,
    pipeline: ExitStack | None = None,
) -> Iterator[None]:
    """Read and write the rows of one tenant until the block ends; one transaction.

    With `user_id`, that user's memberships in other tenants are visible, too (the switcher).
    Inside a scope of the same tenant this does nothing. The transaction commits when the
    block ends and rolls back when it raises. Costs BEGIN, SET LOCAL and COMMIT.

    With `pipeline`, statements are sent in psycopg's pipeline mode until that stack is closed: the
    client waits for PostgreSQL only when it needs a result. Close the stack after the block, so
    that COMMIT is sent together with the last statements.

    Raises TenantScopeError inside another tenant's scope or inside a transaction that was opened
    elsewhere: the setting lasts until the transaction ends, hence longer than the scope.
    """
    if not isinstance(tenant_id, UUID):
        raise TypeError(f"tenant_id must be a UUID, not {type(tenant_id).__name__}")
    current = _open_tenant.get()
    if current is not None:
        if current != tenant_id:
            raise TenantScopeError("another tenant's scope is open")
        if pipeline is not None:
            pipeline.enter_context(_pipeline(using))
        yield
        return
    with _transaction(using, pipeline, tenant_id=str(tenant_id), user_id=user_id):
        token = _open_tenant.set(tenant_id)
        try:
            yield
        finally:
            _open_tenant.reset(token)


@contextmanager
def user_scope(user_id: int, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Read one user's memberships in all tenants, and no other rows of tenants."""
    if _open_tenant.get() is not None:
        raise TenantScopeError("a tenant's scope is open")
    with _transaction(using, None, user_id=user_id):
        yield


def current_tenant_id() -> UUID:
    """The tenant whose scope is open. Raises TenantScopeError if there is none."""
    tenant_id = _open_tenant.get()
    if tenant_id is None:
        raise TenantScopeError("no tenant's scope is open")
    return tenant_id


@contextmanager
def _transaction(
    using: str, pipeline: ExitStack | None, **settings: str | int | None
) -> Iterator[None]:
    connection = connections[using]
    if connection.in_atomic_block:
        raise TenantScopeError("a scope must open the outermost transaction")
    with transaction.atomic(using=using, durable=True):
        if pipeline is not None:
            pipeline.enter_context(_pipeline(using))
        with connection.cursor() as cursor:
            for name, value in settings.items():
                if value is not None:
                    # A separate SET LOCAL with a literal, because Citus does not forward
                    # set_config(). UUIDs and integers need no escaping.
                    cursor.execute(f"SET LOCAL tooltrail.{name} = '{value}'")
        yield


@contextmanager
def _pipeline(using: str) -> Iterator[None]:
    connection = cast(DatabaseWrapper, connections[using])
    connection.ensure_connection()
    raw = cast(psycopg.Connection[Any], connection.connection)
    with connection.wrap_database_errors, raw.pipeline() as connection.pipeline:
        try:
            yield
        finally:
            connection.pipeline = None
