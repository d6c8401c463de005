"""What waits for people, for the navigation: {% load navigation %} {% waiting as waiting %}."""

from typing import NamedTuple

from django import template
from django.template import RequestContext

from audit.queries.inbox import COUNT_LIMIT
from audit.sql.run import rows
from tenants.models import User
from tenants.scope import TenantScopeError

register = template.Library()


class Waiting(NamedTuple):
    """Numbers as text: `999+` for more, '' for none."""

    inbox: str = ""
    """Rejected lines."""
    alerts: str = ""
    """Alerts that nobody has resolved."""
    notes: str = ""
    """Open notes that are assigned to the user."""


@register.simple_tag(takes_context=True)
def waiting(context: RequestContext) -> Waiting:
    """The numbers. One statement, inside the tenant's scope."""
    user = getattr(context.get("request"), "user", None)
    parameters = {
        "count_limit": COUNT_LIMIT,
        "user_name": user.get_username() if isinstance(user, User) else "",
    }
    try:
        (numbers,) = rows("navigation_counts", parameters)
    except TenantScopeError:  # a page without a tenant, such as the sign-in page
        return Waiting()
    return Waiting(*map(_text, numbers))


def _text(number: int) -> str:
    if number >= COUNT_LIMIT:
        return f"{COUNT_LIMIT - 1}+"
    return str(number) if number else ""
