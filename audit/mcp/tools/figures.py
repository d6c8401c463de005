"""Tools about figures of a time range."""

from typing import Final

from audit.mcp.tool import RowsParams, Tool
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


class ViolationsParams(RowsParams, ViolationListParams):
    """Which kinds of violations."""


class LatencyParams(RowsParams, FigureListParams):
    """Which figures."""


class RepeatsParams(RowsParams, RepeatListParams):
    """Which repeats."""


class AlertsParams(RowsParams, AlertParams):
    """Which alerts."""


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
