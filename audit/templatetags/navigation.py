"""The navigation and the link to what explains a page: {% load navigation %}."""

from datetime import UTC, timedelta
from typing import NamedTuple

from django import template
from django.template import Context
from django.utils import timezone

from audit.queries.inbox import COUNT_LIMIT
from audit.show.explained import explanation
from audit.show.navigation import GROUPS, Destination
from audit.sql.run import rows_prepared
from tenants.models import Role, User
from tenants.scope import TenantScopeError

register = template.Library()

_OPEN_WITHIN, _VIOLATING_WITHIN = timedelta(days=7), timedelta(hours=24)
"""How far back open calls, and calls with violations, are counted."""


class Waiting(NamedTuple):
    """Numbers as text: `999+` for more, '' for none."""

    inbox: str = ""
    """Rejected lines."""
    alerts: str = ""
    """Alerts that nobody has resolved."""
    notes: str = ""
    """Open notes that are assigned to the user."""
    open: str = ""
    """Open calls of the last week."""
    violations: str = ""
    """Calls of the last 24 hours with violations."""


class Link(NamedTuple):
    """A page in the navigation."""

    label: str
    address: str
    is_current: bool
    waiting: str
    """How much waits there; '' for nothing."""
    what: str
    """What waits there: `to review`."""
    icon: str
    tone: str
    """Of the number: whether somebody should look at it, or a state."""


class Group(NamedTuple):
    """Pages under a heading; '' for the first, which has none."""

    heading: str
    links: list[Link]


@register.simple_tag(takes_context=True)
def navigation(context: Context) -> list[Group]:
    """The pages that the user's role may open. One statement, inside the tenant's scope."""
    request = context.get("request")  # a server error has none
    membership = getattr(request, "membership", None)
    role = Role(membership.role) if membership else Role.VIEWER
    groups = [
        (heading, [(page, page.address) for page in pages if role in page.roles])
        for heading, pages in GROUPS
    ]
    user = getattr(request, "user", None)
    waiting = _waiting(user.get_username() if isinstance(user, User) else "")
    current = _current(
        getattr(request, "path", ""), [address for _, pages in groups for _, address in pages]
    )
    return [
        Group(heading, [_link(page, address, current, waiting) for page, address in pages])
        for heading, pages in groups
        if pages
    ]


@register.simple_tag(takes_context=True)
def explanation_of_page(context: Context) -> str:
    """The address in the documentation of what explains this page."""
    matched = getattr(context.get("request"), "resolver_match", None)  # a server error has none
    return explanation(matched.url_name if matched else None)


def _link(page: Destination, address: str, current: str, waiting: Waiting) -> Link:
    name, _, what = page.waiting.partition(" ")
    number: str = getattr(waiting, name) if name else ""
    tone = "open" if name == "open" else "violation"
    return Link(page.label, address, address == current, number, what, page.icon, tone)


def _current(path: str, addresses: list[str]) -> str:
    """The longest address that the path begins with; '' for none. Home is only itself."""
    home = min(addresses, key=len)
    under = [
        each
        for each in addresses
        if path == each or (each != home and path.startswith(f"{each.rstrip('/')}/"))
    ]
    return max(under, key=len, default="")


def _waiting(user_name: str) -> Waiting:
    now = timezone.now()
    parameters = {
        "count_limit": COUNT_LIMIT,
        "user_name": user_name,
        "open_since": now - _OPEN_WITHIN,
        "violating_since": now - _VIOLATING_WITHIN,
        "first_open_day": (now - _OPEN_WITHIN).astimezone(UTC).date(),
        "first_violating_day": (now - _VIOLATING_WITHIN).astimezone(UTC).date(),
    }
    try:
        (numbers,) = rows_prepared("navigation_counts", parameters)
    except TenantScopeError:  # a page without a tenant, such as the sign-in page
        return Waiting()
    return Waiting(*map(_text, numbers))


def _text(number: int) -> str:
    if number >= COUNT_LIMIT:
        return f"{COUNT_LIMIT - 1}+"
    return str(number) if number else ""
