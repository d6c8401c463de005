"""Tools about figures of a time range."""

from typing import Final

from pydantic import Field

from audit.mcp.tool import Tool, ToolParams
from audit.pages.alerts.api import AlertList, AlertParams, list_alerts
from audit.pages.show import figure_schemas
from audit.pages.show.figures_api import (
    FigureListParams,
    RepeatListParams,
    ViolationListParams,
    list_latency,
    list_repeats,
    list_violations,
)
from tenants.api_reads import members_of


class ViolationsParams(ToolParams, ViolationListParams):
    """Which kinds of violations."""

    limit: int = Field(20, ge=1, le=200)
    """Maximum number of rows."""


class LatencyParams(ToolParams, FigureListParams):
    """Which figures."""

    limit: int = Field(20, ge=1, le=200)
    """Maximum number of rows."""


class RepeatsParams(ToolParams, RepeatListParams):
    """Which repeats."""

    limit: int = Field(20, ge=1, le=200)
    """Maximum number of rows."""


class AlertsParams(ToolParams, AlertParams):
    """Which alerts."""

    limit: int = Field(20, ge=1, le=200)
    """Maximum number of rows."""


VIOLATIONS: Final = Tool(
    "violations",
    "Violations",
    "List schema violations of a time range by tool, version, path and code, most frequent first."
    " new_since names the version that introduced a kind.",
    ViolationsParams,
    figure_schemas.Violations,
    lambda request, params: members_of(list_violations, request, params=params),
)
LATENCY: Final = Tool(
    "latency",
    "Latency",
    "List calls, failures, durations in milliseconds and tokens by tool and version.",
    LatencyParams,
    figure_schemas.Latency,
    lambda request, params: members_of(list_latency, request, params=params),
)
REPEATS: Final = Tool(
    "repeats",
    "Repeats",
    "List identical calls (same tool and arguments): loops in one trace, repeats in any trace.",
    RepeatsParams,
    figure_schemas.Repeats,
    lambda request, params: members_of(list_repeats, request, params=params),
)
ALERTS: Final = Tool(
    "alerts",
    "Alerts",
    "List alerts, newest first: those that nobody has resolved, or all.",
    AlertsParams,
    AlertList,
    lambda request, params: members_of(list_alerts, request, params=params),
)
