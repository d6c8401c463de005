"""The whole index of a tenant, to compare two indexes that must be equal."""

from django.db import connection

from tenants.models import Tenant
from tenants.scope import tenant_scope

_PLACES = {"tenant_id", "start_batch_id", "start_pos", "end_batch_id", "end_pos"} | {
    *("interim_batch_id", "interim_pos"),
}
_HEARD = {"tenant_id", "last_heard_at"}
_TABLES = {
    "invocation": _PLACES,
    "violation": {"tenant_id"},
    "decision": {"tenant_id", "batch_id", "pos"},
    "violation_day": {"tenant_id"},
    "trace": {"tenant_id"},
    "quarter_rollup": {"tenant_id"},
    "rollup": {"tenant_id"},
    "error_rollup": {"tenant_id"},
    "producer": _HEARD,
}


def index_contents(tenant: Tenant) -> dict[str, list[str]]:
    """The rows of every index table as text, without batch positions and arrival times."""
    index = {}
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        for table, left_out in _TABLES.items():
            cursor.execute(
                f"SELECT (to_jsonb(t) - %s::text[])::text FROM {table} t WHERE tenant_id = %s",
                [sorted(left_out), tenant.id],
            )
            index[table] = sorted(row for (row,) in cursor.fetchall())
    return index
