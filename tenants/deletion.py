"""Deletes a tenant: suspends it, writes a tombstone, deletes all its rows in slices.

For operators; runs as the database owner. The list of tables comes from the catalog, so that no
table is forgotten. The tombstone is written first, so an interrupted deletion can be continued.
"""

import time
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.utils import timezone
from tooltrail.ledger import HASH_LENGTH, root_of

from config.postgresql.aliases import OWNER
from tenants.announcements import tenant_leaves
from tenants.keys import BELIEVED_FOR
from tenants.models import Tenant, TenantSetting, Tombstone

_ROWS = 2_000
_BATCHES = 500
_STILL_WRITING_S = BELIEVED_FOR.total_seconds() + 1


class FloorInForceError(Exception):
    """The tenant has a retention floor: nothing was deleted. The message says what to do."""


type Progress = Callable[[int, int], None]
"""Called with the number of deleted rows and the number of all rows."""

# Tables that hold rows themselves (no partitioned parents: a ctid is unique in one table only),
# each with the tables that refer to it.
_TABLES = """
    SELECT c.relname,
           array_remove(array_agg(DISTINCT f.conrelid::regclass::text), NULL)
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    LEFT JOIN pg_constraint f
        ON f.confrelid = c.oid AND f.contype = 'f' AND f.conrelid <> c.oid
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    GROUP BY c.relname
"""


def delete_tenant(tenant: Tenant, operator: str, progress: Progress) -> Tombstone:
    """Delete a tenant, or continue an interrupted deletion. Runs as the database owner.

    The tombstone names `operator`. The time it takes grows with the tenant's rows. Raises
    FloorInForceError: two admins of the tenant remove the floor first.
    """
    _refuse_floor(tenant)
    if tenant.suspended_at is None:
        tenant.suspended_at = timezone.now()
        Tenant.objects.using(OWNER).filter(pk=tenant.pk).update(suspended_at=tenant.suspended_at)
    _wait_for_writers(tenant)
    if not Tombstone.objects.using(OWNER).filter(pk=tenant.pk).exists():
        tenant_leaves.send(Tenant, tenant=tenant, operator=operator)
    tombstone = _raise_tombstone(tenant, operator)
    tables = list(_tables())
    size = sum(_count(table, tenant.pk) for table in tables)
    done = 0
    progress(done, size)
    for table in tables:
        while deleted := _delete_slice(table, tenant.pk):
            done += deleted
            progress(done, size)
    with transaction.atomic(using=OWNER):
        _execute("DELETE FROM tenant WHERE id = %s", [tenant.pk])
        tombstone.ended_at = timezone.now()
        tombstone.save(using=OWNER, update_fields=["ended_at"])
    return tombstone


def _refuse_floor(tenant: Tenant) -> None:
    """Raise FloorInForceError if the tenant has a retention floor, unless its end has begun."""
    settings = TenantSetting.objects.using(OWNER).filter(tenant=tenant, floor_days__isnull=False)
    days = settings.values_list("floor_days", flat=True).first()
    if days is not None and not Tombstone.objects.using(OWNER).filter(pk=tenant.pk).exists():
        raise FloorInForceError(
            f"{tenant.slug} has a retention floor of {days:,} days; two of its admins must remove"
            " it first, under Settings, Retention floor; nothing was deleted"
        )


def _wait_for_writers(tenant: Tenant) -> None:
    """Wait until no process accepts the tenant's cached keys: later events are refused."""
    assert tenant.suspended_at is not None
    since = (timezone.now() - tenant.suspended_at).total_seconds()
    time.sleep(max(0.0, _STILL_WRITING_S - since))


def _raise_tombstone(tenant: Tenant, operator: str) -> Tombstone:
    known = Tombstone.objects.using(OWNER).filter(pk=tenant.pk).first()
    if known is not None:
        return known
    sizes = [0]

    def counted() -> Iterator[bytes]:
        for leaf in _leaves(tenant.pk):
            sizes[0] += 1
            yield leaf

    root = root_of(counted())
    return Tombstone.objects.using(OWNER).create(
        id=tenant.pk,
        slug=tenant.slug,
        name=tenant.name,
        operator=operator,
        ledger_size=sizes[0],
        ledger_root=root,
    )


def _leaves(tenant_id: UUID) -> Iterator[bytes]:
    """The leaf hashes of the tenant's whole log, in its order."""
    next_index = 0
    while True:
        batches = _execute(
            "SELECT first_index, event_count, leaves FROM batch"
            " WHERE tenant_id = %s AND first_index >= %s AND event_count > 0"
            " ORDER BY first_index LIMIT %s",
            [tenant_id, next_index, _BATCHES],
        )
        for first_index, event_count, leaves in batches:
            next_index = first_index + event_count
            yield from (
                bytes(leaves[at : at + HASH_LENGTH])
                for at in range(0, event_count * HASH_LENGTH, HASH_LENGTH)
            )
        if len(batches) < _BATCHES:
            return


def _tables() -> Iterator[str]:
    """All tables with rows of tenants; a table comes before the tables that it refers to."""
    referring = dict(_execute(_TABLES, []))
    # A partition's parent holds no rows.
    graph = {table: {each for each in by if each in referring} for table, by in referring.items()}
    return iter(TopologicalSorter(graph).static_order())


def _count(table: str, tenant_id: UUID) -> int:
    ((count,),) = _execute(
        f'SELECT count(*) FROM "{table}" WHERE tenant_id = %s',  # noqa: S608  # from the catalog
        [tenant_id],
    )
    return int(count)


def _delete_slice(table: str, tenant_id: UUID) -> int:
    ((count,),) = _execute(
        f'WITH gone AS (DELETE FROM "{table}" WHERE tenant_id = %s AND ctid = ANY(ARRAY('  # noqa: S608  # as above
        f'SELECT ctid FROM "{table}" WHERE tenant_id = %s LIMIT %s)) RETURNING 1)'
        " SELECT count(*) FROM gone",
        [tenant_id, tenant_id, _ROWS],
    )
    return int(count)


def _execute(statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []
