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

    @property
    def address(self) -> str:
        """Its address without a query."""
        return reverse(self.route)


MAIN = (
    Destination("Overview", "home", "start dashboard"),
    Destination("Traces", "trace_list", "timeline runs"),
    Destination("Calls", "call_list", "search query"),
    Destination("Open calls", "open_list", "running overdue"),
    Destination("Alerts", "alert_list", "fired", waiting="alerts not resolved"),
    Destination("Approvals", "approval_list", "decisions refused"),
    Destination("Violations", "violation_list", "schema contract"),
    Destination("Notes", "note_list", "labels assigned", waiting="notes open, assigned to you"),
    Destination("Agents", "agent_list", "models principals"),
    Destination("Conversations", "conversation_list", "runs sessions"),
    Destination("Latency & tokens", "latency_page", "duration percentiles"),
    Destination("Costs", "cost_page", "money prices models"),
    Destination("Repeats", "repeat_page", "loops retries identical"),
    Destination("Tools", "tool_list", "registry contracts versions"),
)
AUDIT = (
    Destination("Definitions as served", "definition_list", "approve"),
    Destination("Reports", "report_list", "pdf schedule"),
    Destination("Rejected events", "inbox_list", "inbox errors", waiting="inbox to review"),
    Destination("Share links", "share_list", "expire anonymous revoke"),
    Destination("Skipped spans", "skipped_list", "opentelemetry otlp"),
    Destination("Ledger", "ledger_page", "checkpoints signatures check"),
    Destination("Evidence", "evidence_page", "bundle verify export zip", _AUDITORS),
    Destination("Samples", "sample_list", "auditor draw population sign-off", _AUDITORS),
    Destination("Audit log", "action_list", "actions who", _AUDITORS),
    Destination("Legal holds", "hold_list", "retention", _AUDITORS),
    Destination("Erasures", "erasure_list", "delete gdpr", _AUDITORS),
)
SETTINGS = (
    Destination("Tenant", "tenant_settings", "settings retention", _ADMINS),
    Destination("Redaction", "redaction_settings", "settings secrets payloads", _ADMINS),
    Destination("Witnesses", "witness_settings", "settings ledger time signatures", _ADMINS),
    Destination("Price lists", "price_list_list", "settings costs", _ADMINS),
    Destination("Streams", "stream_list", "settings siem syslog splunk s3 ocsf", _AUDITORS),
    Destination("Alert channels", "channel_list", "settings mail webhook slack", _ADMINS),
    Destination("API keys", "key_list", "settings create token", _ADMINS),
    Destination("Members", "member_list", "settings invite users roles", _ADMINS),
    Destination("Sign-in", "sign_in_settings", "settings sso oidc provider", _ADMINS),
    Destination("Service accounts", "service_list", "settings keys machines", _ADMINS),
)
GROUPS = (("", MAIN), ("Audit", AUDIT), ("Settings", SETTINGS))
"""The navigation: the heading of each group, and its pages."""
ELSEWHERE = (
    Destination("First steps", "first_steps", "start guide snippet sdk onboarding"),
    Destination("Compare two queries", "compare_page", "difference"),
    Destination("Alert rules", "alert_rule_list", "thresholds"),
    Destination("New alert rule", "alert_rule_new", "create threshold", _EDITORS),
    Destination("Maintenance windows", "maintenance_list", "mute"),
    Destination("Import tools", "tool_import", "definitions contracts", _EDITORS),
    Destination("Preferences", "preferences", "time zone settings"),
    Destination("Sign-in and sessions", "mfa_index", "password passkey factor account"),
    Destination("Documentation", "documentation_home", "help manual guide quick start"),
    Destination("API documentation", "api_docs", "openapi rest reference"),
)


def destinations_matching(text: str, role: Role) -> Iterator[Destination]:
    """The destinations of a role in which each word of a text begins a word, in their order.

    All of them for an empty text.
    """
    wanted = text.casefold().split()
    for each in (*MAIN, *AUDIT, *SETTINGS, *ELSEWHERE):
        own = f"{each.label} {each.words}".casefold().split()
        if role in each.roles and all(any(w.startswith(t) for w in own) for t in wanted):
            yield each
