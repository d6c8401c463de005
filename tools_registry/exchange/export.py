"""Exports the registry as one JSON document, a few tools at a time.

Tools are ordered by name. Each chunk is read in a scope of its own. The document ends with the
number of tools, so a truncated file can be detected. It has no time stamp of the export, so two
exports of an unchanged registry have the same bytes.
"""

import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.db.models import F

from tenants.scope import tenant_scope
from tools_registry.changes import version_states
from tools_registry.exchange.document import FORMAT, FORMAT_VERSION, tool_document
from tools_registry.models import State, Tool, ToolVersion
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of

CHUNK: Final = 50
"""Tools per chunk, with all their versions."""


def export_registry(tenant_id: UUID) -> Iterator[bytes]:
    """All tools of a tenant as chunks of JSON. Opens the tenant's scope for each chunk."""
    head = json.dumps({"format": FORMAT, "version": FORMAT_VERSION})[:-1]
    yield f'{head}, "tools": ['.encode()
    count, after = 0, ""
    while True:
        with tenant_scope(tenant_id):
            documents, after = _chunk(tenant_id, after)
        for document in documents:
            comma = ",\n" if count else "\n"
            yield f"{comma}{json.dumps(document)}".encode()
            count += 1
        if len(documents) < CHUNK:
            break
    yield f'\n], "count": {count}}}\n'.encode()


def current_contracts(tenant_id: UUID) -> list[ToolContract]:
    """The current contracts of all tools that are not retired, ordered by name."""
    versions = list(
        ToolVersion.objects.filter(
            tenant_id=tenant_id, tool__tenant_id=tenant_id, number=F("tool__current_number")
        )
        .select_related("tool")
        .order_by("tool__name")
    )
    states = version_states(tenant_id, [one.tool_id for one in versions])
    return [
        contract_of(one)
        for one in versions
        if states.get((one.tool_id, one.number)) != State.RETIRED
    ]


def _chunk(tenant_id: UUID, after: str) -> tuple[list[dict[str, Any]], str]:
    tools = list(Tool.objects.filter(tenant_id=tenant_id, name__gt=after).order_by("name")[:CHUNK])
    ids = [tool.pk for tool in tools]
    states = version_states(tenant_id, ids)
    versions: dict[UUID, list[ToolVersion]] = {}
    selected = ToolVersion.objects.filter(
        tenant_id=tenant_id, tool_id__in=ids, tool__tenant_id=tenant_id
    )
    for one in selected.select_related("tool").order_by("tool_id", "number"):
        versions.setdefault(one.tool_id, []).append(one)
    documents = [
        tool_document(
            tool,
            versions.get(tool.pk, []),
            {number: state for (tool_id, number), state in states.items() if tool_id == tool.pk},
        )
        for tool in tools
    ]
    return documents, tools[-1].name if tools else after
