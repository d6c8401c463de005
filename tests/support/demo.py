"""The running demo, as its tests use it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql


@dataclass(frozen=True)
class Demo:
    """The running demo: what it printed, and its database as the application sees it."""

    url: str
    user: str
    password: str
    api_key: str
    tenant_id: str
    begun_at: datetime
    """When it was started. Older calls are its history, newer ones arrive while it runs."""
    database_url: str

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Read as the application's role within the demo's tenant, as every page does."""
        with psycopg.connect(self.database_url) as connection:
            scope = sql.SQL("SET LOCAL tooltrail.tenant_id = {}").format(self.tenant_id)
            connection.execute(scope)
            return connection.execute(statement, parameters).fetchall()
