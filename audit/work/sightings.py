"""Records which tool names are called, and retires ephemeral tools that nobody calls any more.

For the worker. Both functions need the tenant's scope.
"""

from datetime import UTC, datetime, timedelta

from audit.queries.tools import expired_tools
from audit.sql.run import rows
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.states import StateError, retire
from tools_registry.versions import find_version

EPHEMERAL_FOR = timedelta(hours=24)
"""How long an ephemeral tool stays published without a call or a registration."""
_DAYS_BACK, _DAYS_BACK_AT_FIRST = timedelta(days=2), timedelta(days=35)


def note_tools(now: datetime) -> None:
    """Record the tool names of recent calls. One statement."""
    today = now.astimezone(UTC).date()
    parameters = {
        "first_day": today - _DAYS_BACK,
        "oldest_day": today - _DAYS_BACK_AT_FIRST,
        "last_day": today + timedelta(days=1),
    }
    rows("note_tools", parameters)


def expire_ephemeral(now: datetime) -> int:
    """Retire ephemeral tools that were not called or registered for a day. Returns how many.

    Registering such a tool again restores it (`tools_registry.attempts`).
    """
    retired = 0
    for tool_id in expired_tools(now - EPHEMERAL_FOR):
        tool = Tool.objects.get(pk=tool_id)
        version = find_version(tool, tool.current_number)
        if version is None:
            continue
        try:
            retire(
                version, Publisher(), reason="The tool is ephemeral and was not called for a day."
            )
        except StateError:  # somebody else has changed it meanwhile
            continue
        retired += 1
    return retired
