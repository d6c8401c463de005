"""Replays of stored outputs against a loose and a strict schema."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from audit.models import Replay
from audit.work.replay import job
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import publish_version

NOW = datetime.now(UTC)
LOOSE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "celsius": {"type": "number"},
        "sky": {"enum": ["clear", "grey"]},
        "hours": {"type": "array", "items": {"type": "object", "required": ["at"]}},
    },
}
STRICT: dict[str, Any] = LOOSE | {
    "required": ["celsius"],
    "additionalProperties": False,
    "properties": LOOSE["properties"] | {"sky": {"enum": ["clear", "grey", "rain"]}},
}
ARGS: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}


def publish_contract(cast: Cast, **members: Any) -> Tool:
    """Publish a version of `get_weather` with the loose schema; the tool."""
    contract = ToolContract.model_validate(
        {
            "name": "get_weather",
            "description": "",
            "input_schema": ARGS,
            "output_schema": LOOSE,
            **members,
        }
    )
    with tenant_scope(cast.tenant.id):
        tool, _ = Tool.objects.get_or_create(tenant=cast.tenant, name=contract.name)
        publish_version(tool, contract, Publisher(cast.editor))
        return tool


def run_replay(cast: Cast, pk: UUID) -> None:
    """Run all slices of a replay."""
    while job.run_slice(cast.tenant.id, pk):
        pass


def read_replay(cast: Cast, pk: UUID) -> Replay:
    """The replay as it is stored now."""
    with tenant_scope(cast.tenant.id):
        return Replay.objects.for_tenant(cast.tenant.id).get(id=pk)


def send_outputs(cast: Cast, outputs: list[Any], **members: Any) -> None:
    """Send a completed call for each output, a second apart, the newest first."""
    send_events(
        cast.tenant,
        (
            event
            for n, data in enumerate(outputs)
            for event in make_call(
                started_at=NOW - timedelta(seconds=n + 60),
                output={"status": "ok", "data": data, "meta": {}},
                **members,
            )
        ),
    )
