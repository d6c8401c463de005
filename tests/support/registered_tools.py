"""Tools in a tenant's registry."""

from typing import Any

from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, send_events
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

NARROW = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}}
DEFINITION = {"name": "get_weather", "description": "Anew.", "inputSchema": NARROW}


def weather_contract(**overrides: Any) -> ToolContract:
    """The contract of `get_weather`, with some members replaced."""
    return ToolContract.model_validate(make_contract(**overrides))


def register_tool(cast: Cast, **overrides: Any) -> Tool:
    """Register a contract as an executor does; the tool."""
    with tenant_scope(cast.tenant.id):
        register_contracts(cast.tenant, [weather_contract(**overrides)], Publisher(key_id="key"))
        return Tool.objects.get(name=overrides.get("name", "get_weather"))


def send_call(cast: Cast, name: str, **members: Any) -> None:
    """Send one completed call of a tool."""
    send_events(cast.tenant, make_call(tool_name=name, **members))
