"""The navigation and the link to what explains a page: {% load navigation %}."""

from datetime import UTC, timedelta
from functools import cache
from html import escape
from typing import NamedTuple

from django import template
from django.template import Context
from django.templatetags.static import static
from django.urls import get_script_prefix
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from audit.queries.inbox import COUNT_LIMIT
from audit.show.explained import explanation
from audit.show.navigation import GROUPS, Destination
from audit.sql.run import rows_prepared
from tenants.models import Role, User
from tenants.scope import TenantScopeError

register = template.Library()

_ICONS = "vendor/icons/3.51.0/icons.svg"
_CURRENT = ' aria-current="page"'

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


@register.simple_tag(takes_context=True)
def navigation_links(context: Context) -> SafeString:
    """The links to the pages that the user's role may open. One statement, inside the scope.

    Made here and not in a template: forty links there took a tenth of the time of a page.
    """
    request = context.get("request")  # a server error has none
    membership = getattr(request, "membership", None)
    role = Role(membership.role) if membership else Role.VIEWER
    groups = _groups(role, get_script_prefix())
    user = getattr(request, "user", None)
    waiting = _waiting(user.get_username() if isinstance(user, User) else "")
    current = _current(
        getattr(request, "path", ""), [link.address for _, links in groups for link in links]
    )
    parts = []
    for heading, links in groups:
        opened = '<div class="nav-part">'
        if heading:
            opened = (
                f'<div class="nav-part" role="group" aria-label="{heading}">'
                f'<span class="nav-group" aria-hidden="true">{heading}</span>'
            )
        shown = (
            f'<a href="{link.address}"{_CURRENT if link.address == current else ""}>'
            f"{link.content}{_number(link, waiting)}</a>"
            for link in links
        )
        parts.append(f"{opened}{''.join(shown)}</div>")
    return mark_safe("".join(parts))  # noqa: S308  # labels and addresses are ours, and escaped


@register.simple_tag(takes_context=True)
def explanation_of_page(context: Context) -> str:
    """The address in the documentation of what explains this page."""
    matched = getattr(context.get("request"), "resolver_match", None)  # a server error has none
    return explanation(matched.url_name if matched else None)


class _Link(NamedTuple):
    """A page in the navigation: its address, its icon and label as markup, and what waits there."""

    address: str
    content: str
    name: str
    """The member of `Waiting`; '' for none."""
    what: str


@cache
def _groups(role: Role, prefix: str) -> list[tuple[str, list[_Link]]]:
    """The groups of a role that have pages, for a server whose addresses begin with a prefix."""
    icons = static(_ICONS)
    return [
        (escape(heading), [_link(page, icons) for page in pages if role in page.roles])
        for heading, pages in GROUPS
        if any(role in page.roles for page in pages)
    ]


def _link(page: Destination, icons: str) -> _Link:
    name, _, what = page.waiting.partition(" ")
    content = (
        f'<svg class="nav-icon" aria-hidden="true"><use href="{escape(icons)}#{page.icon}"/></svg>'
        f'<span class="nav-label">{escape(page.label)}</span>'
    )
    return _Link(escape(page.address), content, name, escape(what))


def _number(link: _Link, waiting: Waiting) -> str:
    number: str = getattr(waiting, link.name) if link.name else ""
    if not number:
        return ""
    tone = "open" if link.name == "open" else "violation"
    return (
        f'<span class="nav-count is-{tone}" title="{number} {link.what}">{number}'
        f'<span class="sr-only"> {link.what}</span></span>'
    )


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
