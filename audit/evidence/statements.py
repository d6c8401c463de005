"""Running the statements of `sql/evidence.sql` in the open scope."""

from typing import Any

from audit.sql.run import run
from tenants.scope import current_tenant_id


def rows(name: str, **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a named statement for the scope's tenant."""
    return run(name, tenant_id=current_tenant_id(), **parameters)
