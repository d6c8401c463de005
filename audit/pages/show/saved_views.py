"""The saved views of a page, for its bar of views; and what a bare address opens with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from audit.models import PageChoice, SavedView
from audit.queries.saved_views import CALLS, NAME_LENGTH, PAGES, offered_views, page_choice
from tenants.access import TenantRequest, has_role
from tenants.models import Role

_ROUTES: Final[Mapping[str, str]] = {
    CALLS: "call_list",
    "traces": "trace_list",
    "violations": "violation_list",
    "latency": "latency_page",
    "costs": "cost_page",
}
_OF_A_PLACE: Final = ("before", "after", "live", "pause", "plain")
"""Members of an address that say where on a page a reader is."""


@dataclass(frozen=True, slots=True)
class ShownView:
    """A view in the bar of its page, and what the member may do with it."""

    view: SavedView
    address: str
    is_current: bool
    is_default: bool
    is_own: bool
    may_change: bool


@dataclass(frozen=True, slots=True)
class PageViews:
    """The bar of views of a page: `query` is what a new view would keep; '' for nothing."""

    page: str
    title: str
    query: str
    views: list[ShownView]
    may_share: bool
    name_length: int = NAME_LENGTH

    @property
    def plain(self) -> str:
        """The address of the page without a view, also if a view is the default."""
        return plain_address(self.page)

    @property
    def is_any_default(self) -> bool:
        """Whether a view is the default, so that the page's own address leads to it."""
        return any(each.is_default for each in self.views)


def view_address(page: str, query: str) -> str:
    """The address of what a view lists."""
    if not query:
        return plain_address(page)
    return f"{reverse(_ROUTES[page])}?{urlencode({'q': query}) if page == CALLS else query}"


def plain_address(page: str) -> str:
    """The address of a page without a view, also if a view is the default."""
    return f"{reverse(_ROUTES[page])}?plain=1"


def kept_query(request: HttpRequest) -> str:
    """What a view of this page would keep: the address's query without places in the rows."""
    params = request.GET.copy()
    for name in _OF_A_PLACE:
        params.pop(name, None)
    return params.urlencode()


def page_views(request: TenantRequest, page: str, query: str) -> PageViews:
    """The views of a page that the member is offered. At most two statements."""
    views = offered_views(request.user, page)
    choice = page_choice(request.user, page) if views else None
    default = choice.default_view if choice else None
    is_admin = has_role(request.membership, Role.ADMIN)
    return PageViews(
        page,
        PAGES[page],
        query,
        [
            ShownView(
                each,
                view_address(page, each.query),
                each.query == query,
                each.id == default,
                (is_own := each.user_id == request.user.pk),
                is_own or is_admin,
            )
            for each in views
        ],
        has_role(request.membership, Role.EDITOR),
    )


def default_address(request: TenantRequest, page: str, choice: PageChoice | None) -> str:
    """Where the page's own address leads: to the member's default view, if it is still offered.

    '' for any other address. At most one statement.
    """
    if request.GET or choice is None or choice.default_view is None:
        return ""
    default: UUID = choice.default_view
    views = {each.id: each for each in offered_views(request.user, page)}
    return view_address(page, views[default].query) if default in views else ""


def opens_with(request: TenantRequest, page: str) -> str:
    """Where the page's own address leads, of a page whose columns are not chosen.

    '' for any other address. At most two statements, and none for any other address.
    """
    if request.GET:
        return ""
    return default_address(request, page, page_choice(request.user, page))
