"""What pages and the API read of the index: named statements in, typed rows out.

Each function is one screen's question. The statements are in `audit/sql`; here they get
their parameters and their rows get names. All must run inside the tenant's scope.
What lies in the log is `audit.log`'s.
"""

from typing import Any, cast

from django.db import connection

from audit import sql
from tenants.scope import current_tenant_id


def rows(name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run a named statement for the scope's tenant, which is its parameter `tenant_id`."""
    with connection.cursor() as cursor:
        cursor.execute(sql.QUERIES[name], {"tenant_id": current_tenant_id(), **parameters})
        return cast(list[tuple[Any, ...]], cursor.fetchall())
