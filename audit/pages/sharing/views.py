"""Share links: a new one, the list, payloads, and revoke."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.models import ShareLink
from audit.pages.sharing.forms import ShareForm
from audit.pages.sharing.targets import InvalidTargetError, UnknownTargetError, read_target
from audit.pages.show.reveal import RevealForm
from audit.work.sharing import (
    TooManyLinksError,
    allow_payloads,
    find_link,
    is_open,
    make_link,
    revoke_link,
    token_of,
)
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.models import Role

PAGE_SIZE = 50
EDITS = Role.EDITOR
_COLUMNS: Mapping[str, Key[ShareLink]] = {
    "page": lambda link: link.address,
    "for": lambda link: "anybody" if link.is_anonymous else "members",
    "payloads": lambda link: link.payloads_by,
    "opened": lambda link: link.opened_count,
    "expires": lambda link: link.expires_at,
}
"""The columns by which links are sorted."""


class ListedLink(NamedTuple):
    """A link, whether it can be opened, and its address for those who may pass it on."""

    stored: ShareLink
    is_open: bool
    url: str


@require_safe
@tenant_page()
def share_list(request: TenantRequest) -> HttpResponseBase:
    """Show all links, newest first. Editors can copy those that can be opened."""
    now = timezone.now()
    order = requested_order(request, _COLUMNS, "")
    shown, pager = _page(request, order)
    may_edit = has_role(request.membership, EDITS)
    context = {
        "links": [_listed(request, link, now, with_url=may_edit) for link in shown],
        "order": order,
        **pager,
        "may_edit": may_edit,
        "may_reveal": has_role(request.membership, Role.AUDITOR),
        "allows_anonymous": request.tenant.anonymous_links,
    }
    return render(request, "sharing/share_list.html", context)


def _page(request: TenantRequest, order: Order) -> tuple[list[ShareLink], dict[str, Any]]:
    """Return the links of the page that the address names, and the context of its pager."""
    links = ShareLink.objects.for_tenant(request.tenant.id).order_by("-id")
    place = request.GET.get("before", "")
    if order.column:
        newest = links[: SORTED_MAX + 1]
        page = page_in_order(
            newest, _COLUMNS, order, identify=lambda one: one.id, after=place, size=PAGE_SIZE
        )
        return page.rows, page.pager
    before = _read_id(place)
    if before is not None:
        links = links.filter(id__lt=before)
    listed = list(links[: PAGE_SIZE + 1])
    shown = listed[:PAGE_SIZE]
    older = shown[-1].id if len(listed) > PAGE_SIZE else None
    return shown, {"older": older, "is_first_page": before is None}


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=EDITS)
def share_new(request: TenantRequest) -> HttpResponseBase:
    """Make a link to the page of `address`."""
    is_sent = request.method == "POST"
    now = timezone.now()
    address = (request.POST if is_sent else request.GET).get("address", "")
    zone = timezone.get_current_timezone()
    try:
        target = read_target(address, now, zone, request.user.default_range)
    except (UnknownTargetError, InvalidTargetError) as error:
        raise Http404("no page that can be shared") from error
    form = ShareForm(request.tenant, request.POST if is_sent else None)
    link = None
    if is_sent and form.is_valid():
        lasts = timedelta(days=form.cleaned_data["days"])
        try:
            link = make_link(
                request.tenant,
                request.user,
                target.kind,
                target.address,
                lasts=lasts,
                is_anonymous=form.cleaned_data["is_anonymous"],
                now=now,
            )
        except TooManyLinksError as error:
            form.add_error(None, str(error))
    context = {
        "form": form,
        "target": target,
        "address": address,
        "made": None if link is None else _listed(request, link, now, with_url=True),
    }
    status = 422 if is_sent and link is None else 200
    return render(request, "sharing/share_new.html", context, status=status)


@require_POST
@tenant_page(role=EDITS)
def share_revoke(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Close a link for good."""
    if revoke_link(request.tenant, request.user, _link_or_404(pk), timezone.now()):
        messages.success(request, "The link no longer opens.")
    return redirect("share_list")


@require_POST
@tenant_page(role=Role.AUDITOR)
@needs_fresh_factor
def share_payloads(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Let a link show payloads, for a reason that stays in the ledger."""
    link = _link_or_404(pk)
    form = RevealForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was changed. Enter a reason of at least 3 characters.")
    elif allow_payloads(request.tenant, request.user, link, form.cleaned_data["reason"]):
        messages.success(request, "The link shows payloads.")
    return redirect("share_list")


def url_of(link: ShareLink, request: HttpRequest) -> str:
    """Return the whole address that opens a link."""
    return request.build_absolute_uri(reverse("shared", args=[token_of(link)]))


def _listed(
    request: TenantRequest, link: ShareLink, now: datetime, *, with_url: bool
) -> ListedLink:
    opens = is_open(link, now)
    return ListedLink(link, opens, url_of(link, request) if with_url and opens else "")


def _link_or_404(pk: UUID) -> ShareLink:
    link = find_link(pk)
    if link is None:
        raise Http404("no such link")
    return link


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
