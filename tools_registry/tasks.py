"""The worker's tasks for the registry."""

from uuid import UUID

from procrastinate.contrib.django import app

from config.postgresql.retry import AGAIN
from tools_registry.exchange import job


@app.task(retry=AGAIN)
def import_tools(tenant_id: str, import_id: str) -> None:
    """Continue an import for a few seconds, then defer the rest, so that other tasks can run."""
    if job.run_slice(UUID(tenant_id), UUID(import_id)):
        import_tools.defer(tenant_id=tenant_id, import_id=import_id)
