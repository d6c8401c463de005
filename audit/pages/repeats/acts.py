"""Marking tools as polling, each change with its entry in the audit log. Needs the scope."""

from audit.models import PollingTool
from audit.queries.polling import add_polling_tool, remove_polling_tool
from tenants.actions import Actor, record_action
from tenants.models import Tenant


def exclude_tool(tenant: Tenant, actor: Actor, name: str) -> None:
    """Exclude a tool from the repeats, because it polls. Raises TooManyPollingToolsError."""
    add_polling_tool(name)
    record_action(tenant, actor, "polling.add", name, rows=[PollingTool(tool_name=name)])


def include_tool(tenant: Tenant, actor: Actor, name: str) -> bool:
    """Include a tool in the repeats again; False if it was not excluded."""
    if not remove_polling_tool(name):
        return False
    record_action(tenant, actor, "polling.remove", name, rows=[PollingTool(tool_name=name)])
    return True
