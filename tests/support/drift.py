"""Outputs of a tool and the contract they may drift from."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, send_events
from tools_registry.schemas import ToolContract

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "celsius": {"type": "number"},
        "sky": {"enum": ["clear", "grey"]},
        "station": {"type": "string"},
    },
}


def weather_contract(**members: Any) -> ToolContract:
    """The contract of `get_weather` with `OUTPUT_SCHEMA`."""
    return ToolContract.model_validate(make_contract(output_schema=OUTPUT_SCHEMA, **members))


def send_outputs(cast: Cast, outputs: Iterable[Any], **members: Any) -> None:
    """Send a completed call for each output, a second apart, the newest first."""
    now = datetime.now(UTC)
    send_events(
        cast.tenant,
        (
            event
            for n, data in enumerate(outputs)
            for event in make_call(
                started_at=now - timedelta(seconds=n + 60),
                output={"status": "ok", "data": data, "meta": {}},
                **members,
            )
        ),
    )
