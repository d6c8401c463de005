"""The steps: what each is, whether it was done, where it is done, and who may do it."""

from dataclasses import dataclass

from django.urls import reverse

from audit.queries.first_steps import Progress
from audit.show.addresses import address_in_trace
from tenants.access import has_role
from tenants.models import Membership, Role

_WHO = {
    Role.ADMIN: "An admin can do this.",
    Role.EDITOR: "An editor or an admin can do this.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step, for one reader."""

    name: str
    why: str
    is_done: bool
    label: str = ""
    """Of the link to `address`; '': the step has none."""
    address: str = ""
    who: str = ""
    """Who may do it, if the reader may not."""


def steps_of(progress: Progress, membership: Membership) -> list[Step]:
    """All steps, in their order."""

    def step(
        name: str, why: str, is_done: bool, label: str, address: str, role: Role = Role.VIEWER
    ) -> Step:
        if not has_role(membership, role):
            return Step(name, why, is_done, who="" if is_done else _WHO[role])
        return Step(name, why, is_done, label, address)

    newest = progress.newest
    return [
        step(
            "Create an API key",
            "Your program needs it to send its tool calls.",
            progress.has_key,
            "API keys" if progress.has_key else "Create it here",
            reverse("key_list") if progress.has_key else "#first-call",
            Role.ADMIN,
        ),
        step(
            "Run your program with a snippet",
            "Python, JavaScript, MCP, OpenTelemetry, HTTP, or an agent framework.",
            progress.has_sent,
            "Snippets",
            "#first-call",
        ),
        step(
            "See the first call",
            "It appears here within seconds.",
            newest is not None,
            "" if newest is None else "Open its trace",
            "" if newest is None else address_in_trace(newest),
        ),
        step(
            "Register a first schema",
            "Results are then validated. The Python SDK registers a decorated function by itself.",
            progress.has_schema,
            "Tools" if progress.has_schema else "Import tools",
            reverse("tool_list" if progress.has_schema else "tool_import"),
            Role.VIEWER if progress.has_schema else Role.EDITOR,
        ),
        step(
            "Make a first alert rule",
            "You are told when calls fail, break their schema or take too long.",
            progress.has_alert_rule,
            "Alert rules" if progress.has_alert_rule else "Choose rules",
            reverse("alert_rule_list"),
            Role.VIEWER if progress.has_alert_rule else Role.EDITOR,
        ),
        step(
            "Invite a colleague",
            "With a role: viewer, editor, auditor or admin.",
            progress.has_company,
            "Members",
            reverse("member_list"),
            Role.ADMIN,
        ),
    ]
