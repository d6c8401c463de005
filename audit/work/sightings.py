"""Names that calls were made under, and what becomes of tools that nobody calls any more.

For the worker; both need the tenant's scope.
"""

from datetime import UTC, datetime, timedelta

from audit.queries.tools import expired_tools
from audit.sql.run import rows
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.states import StateError, retire
from tools_registry.versions import find_version

EPHEMERAL_FOR = timedelta(hours=24)
"""How long a tool that lives for a turn stays published without being called or registered."""
_LOOKS_BACK, _LOOKS_BACK_AT_FIRST = timedelta(days=2), timedelta(days=35)


def note_tools(now: datetime) -> None:
    """Put on record under which names calls were made lately. One statement."""
    today = now.astimezone(UTC).date()
    parameters = {
        "first_day": today - _LOOKS_BACK,
        "oldest_day": today - _LOOKS_BACK_AT_FIRST,
        "last_day": today + timedelta(days=1),
    }
    rows("note_tools", parameters)


def expire_ephemeral(now: datetime) -> int:
    """Retire tools that live for a turn and were left alone for a day; how many.

    Registered again, they are restored (`tools_registry.attempts`).
    """
    retired = 0
    for tool_id in expired_tools(now - EPHEMERAL_FOR):
        tool = Tool.objects.get(pk=tool_id)
        version = find_version(tool, tool.current_number)
        if version is None:
            continue
        try:
            retire(
                version, Publisher(), reason="It lived for one turn, and was not called for a day."
            )
        except StateError:  # by somebody else meanwhile
            continue
        retired += 1
    return retired
