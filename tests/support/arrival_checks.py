"""A tool whose outputs are checked on arrival, and an output that violates its schema."""

from typing import Any

from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.tools import check_on_arrival
from tools_registry.versions import register_contracts

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["celsius"],
    "properties": {"days": {"type": "array", "items": {"type": "integer"}}},
}
VIOLATING_OUTPUT = {"status": "ok", "data": {"days": [1, "two", 3, "four"]}, "meta": {"took_ms": 1}}


def register_checked_tool(
    tenant: Tenant, *, name: str = "get_weather", is_on: bool = True, **more: Any
) -> Tool:
    """A registered tool; with `is_on` its outputs are validated on arrival."""
    contract = make_contract(name=name, **({"output_schema": OUTPUT_SCHEMA} | more))
    with tenant_scope(tenant.id):
        by = Publisher(key_id="key")
        register_contracts(tenant, [ToolContract.model_validate(contract)], by)
        tool = Tool.objects.get(name=name)
        check_on_arrival(tool, by, is_on=is_on)
    return tool
