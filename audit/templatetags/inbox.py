"""How many rejected lines are waiting: {% load inbox %} {% inbox_waiting as waiting %}."""

from django import template

from audit.queries.inbox import COUNT_LIMIT, inbox_open_count
from tenants.scope import TenantScopeError

register = template.Library()


@register.simple_tag
def inbox_waiting() -> str:
    """The number, `999+` for more, '' for none. One statement, inside the tenant's scope."""
    try:
        number = inbox_open_count()
    except TenantScopeError:  # a page without a tenant, such as the sign-in page
        return ""
    if number >= COUNT_LIMIT:
        return f"{COUNT_LIMIT - 1}+"
    return str(number) if number else ""
