"""The pages that one can go to: those of the navigation, and those that only the palette names."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from tenants.models import Role

_ALL = frozenset(Role)
_EDITORS = frozenset({Role.EDITOR, Role.ADMIN})
_AUDITORS = frozenset({Role.AUDITOR, Role.ADMIN})
_ADMINS = frozenset({Role.ADMIN})


@dataclass(frozen=True, slots=True)
class Destination:
    """A page that one can go to."""

    label: str
    route: str
    words: str = ""
    """Further words under which the palette finds it."""
    roles: frozenset[Role] = _ALL
    """Who may open it."""
    waiting: str = ""
    """The member of `Waiting` that is shown beside it, and what it counts: `inbox to review`."""
    icon: str = ""
    """The name of its icon (`static/vendor/icons`)."""

    @property
    def address(self) -> str:
        """Its address without a query."""
        return reverse(self.route)


OVERVIEW = (
    Destination("Overview", "home", "start dashboard", icon="layout-dashboard"),
    Destination("Boards", "board_list", "dashboard own pages charts", icon="layout-grid"),
)
ACTIVITY = (
    Destination("Traces", "trace_list", "timeline runs", icon="timeline"),
    Destination("Calls", "call_list", "search query", icon="list-details"),
    Destination(
        "Open calls",
        "open_list",
        "running overdue",
        waiting="open open, of the last 7 days",
        icon="hourglass",
    ),
    Destination("Conversations", "conversation_list", "runs sessions", icon="messages"),
    Destination("Agents", "agent_list", "models principals", icon="robot"),
)
QUALITY = (
    Destination(
        "Violations",
        "violation_list",
        "schema contract",
        waiting="violations calls with violations in 24 h",
        icon="alert-triangle",
    ),
    Destination("Alerts", "alert_list", "fired", waiting="alerts not resolved", icon="bell"),
    Destination("Approvals", "approval_list", "decisions refused", icon="checks"),
    Destination(
        "Notes", "note_list", "labels assigned", waiting="notes open, assigned to you", icon="note"
    ),
)
FIGURES = (
    Destination("Latency & tokens", "latency_page", "duration percentiles", icon="chart-histogram"),
    Destination("Costs", "cost_page", "money prices models", icon="coin"),
    Destination("Repeats", "repeat_page", "loops retries identical", icon="repeat"),
)
REGISTRY = (
    Destination("Tools", "tool_list", "registry contracts versions", icon="tool"),
    Destination("Definitions as served", "definition_list", "approve", icon="file-certificate"),
)
AUDIT = (
    Destination("Reports", "report_list", "pdf schedule", icon="report-analytics"),
    Destination("Ledger", "ledger_page", "checkpoints signatures check", icon="shield-lock"),
    Destination(
        "Evidence", "evidence_page", "bundle verify export zip", _AUDITORS, icon="file-zip"
    ),
    Destination(
        "Incidents",
        "incident_list",
        "hold evidence timeline bundle",
        _AUDITORS,
        icon="urgent",
    ),
    Destination(
        "Samples",
        "sample_list",
        "auditor draw population sign-off",
        _AUDITORS,
        icon="clipboard-check",
    ),
    Destination("Audit log", "action_list", "actions who", _AUDITORS, icon="history"),
    Destination("Legal holds", "hold_list", "retention", _AUDITORS, icon="lock"),
    Destination(
        "Retention floor",
        "floor_page",
        "settings lower two admins",
        _AUDITORS,
        icon="arrow-bar-to-up",
    ),
    Destination("Erasures", "erasure_list", "delete gdpr", _AUDITORS, icon="eraser"),
    Destination("Share links", "share_list", "expire anonymous revoke", icon="share"),
)
INTAKE = (
    Destination(
        "Rejected events",
        "inbox_list",
        "inbox errors",
        waiting="inbox to review",
        icon="inbox",
    ),
    Destination("Skipped spans", "skipped_list", "opentelemetry otlp", icon="filter-off"),
)
SETTINGS = (
    Destination("Tenant", "tenant_settings", "settings retention", _ADMINS, icon="settings"),
    Destination(
        "Redaction", "redaction_settings", "settings secrets payloads", _ADMINS, icon="eye-off"
    ),
    Destination(
        "Witnesses",
        "witness_settings",
        "settings ledger time signatures",
        _ADMINS,
        icon="signature",
    ),
    Destination("Price lists", "price_list_list", "settings costs", _ADMINS, icon="receipt"),
    Destination(
        "Streams",
        "stream_list",
        "settings siem syslog splunk s3 ocsf",
        _AUDITORS,
        icon="cloud-upload",
    ),
    Destination(
        "Alert channels", "channel_list", "settings mail webhook slack", _ADMINS, icon="send"
    ),
    Destination("API keys", "key_list", "settings create token", _ADMINS, icon="key"),
    Destination("Members", "member_list", "settings invite users roles", _ADMINS, icon="users"),
    Destination("Sign-in", "sign_in_settings", "settings sso oidc provider", _ADMINS, icon="login"),
    Destination(
        "Service accounts",
        "service_list",
        "settings keys machines",
        _ADMINS,
        icon="user-cog",
    ),
)
HELP = (
    Destination(
        "Documentation", "documentation_home", "help manual guide quick start", icon="book"
    ),
    Destination("API documentation", "api_docs", "openapi rest reference", icon="api"),
)
GROUPS = (
    ("", OVERVIEW),
    ("Activity", ACTIVITY),
    ("Quality", QUALITY),
    ("Figures", FIGURES),
    ("Registry", REGISTRY),
    ("Audit", AUDIT),
    ("Intake", INTAKE),
    ("Settings", SETTINGS),
    ("Help", HELP),
)
"""The navigation: the heading of each group, and its pages."""
PAGES = tuple(page for _, pages in GROUPS for page in pages)
"""All pages of the navigation."""
ELSEWHERE = (
    Destination("First steps", "first_steps", "start guide snippet sdk onboarding"),
    Destination("Compare two queries", "compare_page", "difference"),
    Destination("Alert rules", "alert_rule_list", "thresholds"),
    Destination("New alert rule", "alert_rule_new", "create threshold", _EDITORS),
    Destination("Maintenance windows", "maintenance_list", "mute"),
    Destination("Import tools", "tool_import", "definitions contracts", _EDITORS),
    Destination("Preferences", "preferences", "time zone settings"),
    Destination("Sign-in and sessions", "mfa_index", "password passkey factor account"),
)


def destinations_matching(text: str, role: Role) -> Iterator[Destination]:
    """The destinations of a role in which each word of a text begins a word, in their order.

    All of them for an empty text.
    """
    wanted = text.casefold().split()
    for each in (*PAGES, *ELSEWHERE):
        own = f"{each.label} {each.words}".casefold().split()
        if role in each.roles and all(any(w.startswith(t) for w in own) for t in wanted):
            yield each
