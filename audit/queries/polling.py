"""Polling tools: tools that are meant to be called repeatedly with the same arguments."""

from django.utils import timezone

from audit.models import PollingTool
from tenants.scope import current_tenant_id

MAX_TOOLS = 200
"""Maximum polling tools of one tenant."""
NAME_LENGTH = 512


class TooManyPollingToolsError(Exception):
    """A tenant already has the maximum of polling tools."""


def polling_tools() -> list[str]:
    """The names of the polling tools of the scope's tenant, in order. One query."""
    matches = PollingTool.objects.for_tenant(current_tenant_id()).order_by("tool_name")
    return list(matches.values_list("tool_name", flat=True))


def add_polling_tool(name: str) -> None:
    """Exclude a tool from now on. Raises TooManyPollingToolsError."""
    if len(set(polling_tools()) | {name}) > MAX_TOOLS:
        raise TooManyPollingToolsError
    PollingTool.objects.bulk_create(
        [PollingTool(tenant_id=current_tenant_id(), tool_name=name, created_at=timezone.now())],
        ignore_conflicts=True,
    )


def remove_polling_tool(name: str) -> bool:
    """Include a tool again. Returns whether it was excluded."""
    matches = PollingTool.objects.for_tenant(current_tenant_id()).filter(tool_name=name)
    return bool(matches.delete()[0])
