"""The guide through the first steps, as the overview and its own page show it."""

from datetime import datetime
from typing import Any

from audit.pages.first_steps.snippets import snippets
from audit.pages.first_steps.steps import steps_of
from audit.queries.first_steps import progress_of
from tenants.access import TenantRequest, has_role
from tenants.models import Role


def guide(request: TenantRequest, now: datetime) -> dict[str, Any]:
    """What `templates/first_steps/_guide.html` shows. One statement."""
    progress = progress_of(request.user.pk, now)
    steps = steps_of(progress, request.membership)
    return {
        "progress": progress,
        "steps": steps,
        "done": sum(step.is_done for step in steps),
        "snippets": snippets(),
        "makes_keys": has_role(request.membership, Role.ADMIN),
    }
