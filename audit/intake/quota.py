"""An optional limit on the events a key may send. By default there is none.

A key has one bucket in the database, for all processes of all hosts (`config.http.quota`).
"""

from functools import cache
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from audit.sql.run import rows
from config.http.quota import HOLDS_S, Quota
from tenants.scope import tenant_scope


@cache
def quota() -> Quota[tuple[UUID, str]]:
    """The quota of a key, given by its tenant and its key id, over all hosts."""
    return Quota(settings.EVENTS_PER_SECOND, settle_quota)


def settle_quota(key: tuple[UUID, str], taken: int) -> float:
    """Take events from the key's bucket in the database; how many are left in it."""
    tenant_id, key_id = key
    per_second = settings.EVENTS_PER_SECOND
    with tenant_scope(tenant_id):
        ((left,),) = rows(
            "settle_quota",
            {
                "key_id": key_id,
                "taken": taken,
                "per_second": per_second,
                "full": per_second * HOLDS_S,
                "now": timezone.now(),
            },
        )
    return float(left)
