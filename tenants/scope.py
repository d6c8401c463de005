"""The tenant scope: the one way to a tenant's rows.

Row-level security compares every row's tenant with the setting `tooltrail.tenant_id` of
the transaction; unset, nothing matches. Only this module writes that setting.
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
    """See and write the rows of one tenant until the block ends; one transaction.

    With `user_id`, that user's memberships of other tenants are seen, too (the switcher).
    Inside a scope of the same tenant this does nothing. The transaction commits when the
    block ends and rolls back when it raises. Costs BEGIN, SET LOCAL and COMMIT. With `pipeline`,
    PostgreSQL is waited for only where a result is needed, until that stack is closed, which is
    to be after the block: then even COMMIT goes out with what was written last.

    Raises TenantScopeError inside another tenant's scope or a transaction of somebody
    else: there, leaving the scope would not end what it allowed.
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
    """See one user's memberships, of whichever tenant, and nothing else of any tenant."""
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
                    # A literal SET LOCAL alone in its message: set_config() is not
                    # forwarded by Citus. UUIDs and integers need no quoting.
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
