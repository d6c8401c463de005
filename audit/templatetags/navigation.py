"""What waits for people, for the navigation: {% load navigation %} {% waiting as waiting %}."""

from typing import NamedTuple

from django import template

from audit.queries.inbox import COUNT_LIMIT
from audit.sql.run import rows
from tenants.scope import TenantScopeError

register = template.Library()


class Waiting(NamedTuple):
    """Numbers as text: `999+` for more, '' for none."""

    inbox: str = ""
    """Rejected lines."""
    alerts: str = ""
    """Alerts that nobody has resolved."""


@register.simple_tag
def waiting() -> Waiting:
    """The numbers. One statement, inside the tenant's scope."""
    try:
        ((inbox, alerts),) = rows("navigation_counts", {"count_limit": COUNT_LIMIT})
    except TenantScopeError:  # a page without a tenant, such as the sign-in page
        return Waiting()
    return Waiting(_text(inbox), _text(alerts))


def _text(number: int) -> str:
    if number >= COUNT_LIMIT:
        return f"{COUNT_LIMIT - 1}+"
    return str(number) if number else ""
