"""A tool with two versions, the second published at a given time, and calls of both."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, send_events
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import publish_version


def two_versions(cast: Cast, at: datetime) -> Tool:
    """`get_weather`, its version 2 published at that moment, version 1 a month before."""
    with tenant_scope(cast.tenant.id):
        tool = Tool.objects.create(tenant=cast.tenant, name="get_weather")
        for description in ("Tells the weather.", "Tells it faster."):
            contract = ToolContract.model_validate(make_contract(description=description))
            publish_version(tool, contract, Publisher(cast.editor))
    with connections["owner"].cursor() as cursor:  # versions are never altered by us
        for number, published in ((1, at - timedelta(days=30)), (2, at)):
            cursor.execute(
                "UPDATE tool_version SET created_at = %s"
                " WHERE tenant_id = %s AND tool_id = %s AND number = %s",
                [published, cast.tenant.id, tool.pk, number],
            )
    return tool


def send_calls(
    cast: Cast, first: datetime, count: int, *, failed: int = 0, violating: int = 0, **members: Any
) -> None:
    """Send completed calls, one a second; the first ones failed, or violate."""

    def events() -> Iterator[dict[str, Any]]:
        violation = {"path": "$.celsius", "code": "WRONG_TYPE", "expected": "", "received": ""}
        for n in range(count):
            guard = {"strategy": "warn", "outcome": "passed", "violations": [violation]}
            yield from make_call(
                started_at=first + timedelta(seconds=n),
                is_error=n < failed,
                guard=guard if n < violating else None,
                **members,
            )

    send_events(cast.tenant, events())
