"""The tools of `/mcp`, by name."""

from typing import Any, Final

from audit.mcp.tool import Tool
from audit.mcp.tools import calls, explaining, figures, ledger, registry

_ALL: Final[tuple[Tool[Any], ...]] = (
    calls.SEARCH_CALLS,
    calls.GET_CALL,
    calls.GET_TRACE,
    calls.OPEN_CALLS,
    figures.VIOLATIONS,
    registry.WHAT_CHANGED,
    registry.TOOL_CONTRACT,
    figures.LATENCY,
    figures.REPEATS,
    figures.ALERTS,
    ledger.PROVE_CALL,
    explaining.EXPLAIN,
)
TOOLS: Final[dict[str, Tool[Any]]] = {tool.name: tool for tool in _ALL}
"""In the order of `tools/list`."""
