"""Opens a share link: shows the shared page as a viewer sees it, without the navigation.

Only what the link names is shown, whatever the reader's role is. A member of the tenant signs in
first, unless the link opens for anybody and the tenant allows that.
"""

from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from audit.models import ShareLink
from audit.pages.sharing.targets import match_of
from audit.work.sharing import ANYBODY, is_open, note_opening, read_token
from tenants.access import WITHIN, TenantRequest, turn_away
from tenants.accounts.policy import why_refused
from tenants.models import Membership, Role, Tenant, User
from tenants.scope import tenant_scope
from tenants.sessions import memberships_of, opened_by
from tenants.zones import zone_of


@dataclass(frozen=True)
class Viewer:
    """The membership of a reader: what a viewer may, and payloads if the link shows them."""

    tenant: Tenant
    user: User
    sees_payloads: bool
    role: Role = Role.VIEWER
    may_reveal: bool = False

    @property
    def tenant_id(self) -> UUID:
        """The id of the link's tenant."""
        return self.tenant.pk

    @property
    def reaches_payloads(self) -> bool:
        """Whether the reader can see payloads."""
        return self.sees_payloads


class SharedRequest(TenantRequest):
    """The request that a shared page gets."""

    share: ShareLink


@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show what a link leads to. 404 if it is unknown, expired, revoked, or not for this reader."""
    ids = read_token(token)
    if ids is None:
        raise Http404("no such link")
    tenant_id, link_id = ids
    now = timezone.now()
    member = _member(request, tenant_id)
    entered = cast(SharedRequest, request)
    with tenant_scope(tenant_id):
        tenant = Tenant.objects.filter(pk=tenant_id, suspended_at=None).first()
        link = ShareLink.objects.for_tenant(tenant_id).filter(id=link_id).first()
        if tenant is None or link is None or not is_open(link, now):
            raise Http404("no such link")
        entered.tenant, entered.share, entered.memberships = tenant, link, []
        refusal = why_refused(request.session, member, now) if member is not None else None
        reader = None if refusal else member
        if reader is not None or (link.is_anonymous and tenant.anonymous_links):
            note_opening(link, ANYBODY if reader is None else reader.user, now)
            return _page(entered, link, reader)
    if member is not None and refusal:
        entered.membership = member
        return turn_away(entered, refusal)
    if request.user.is_authenticated:
        raise Http404("not a member of the link's tenant")
    return redirect_to_login(request.get_full_path())


def _member(request: HttpRequest, tenant_id: UUID) -> Membership | None:
    """The reader's membership of the tenant that the session may open."""
    if not request.user.is_authenticated:
        return None
    everywhere = opened_by(request.session, memberships_of(request.user.pk))
    mine = next((one for one in everywhere if one.tenant_id == tenant_id), None)
    if mine is not None:
        mine.user = request.user
    return mine


def _page(request: SharedRequest, link: ShareLink, member: Membership | None) -> HttpResponseBase:
    match = match_of(link.address)
    view = None if match is None else getattr(match.func, WITHIN, None)
    if match is None or view is None:  # a page that an earlier release shared
        raise Http404("the shared page no longer exists")
    # Records of what was read name the link; without a sign-in there is no account.
    request.user = User(username=f"share link {link.id}") if member is None else member.user
    viewer = Viewer(request.tenant, request.user, sees_payloads=link.payloads_by is not None)
    request.membership = cast(Membership, viewer)
    params = QueryDict(urlsplit(link.address).query, mutable=True)
    if link.kind == "trace":  # where in the trace the reader is: it shows nothing else
        for name in request.GET:
            params[name] = request.GET[name]
    request.GET = params  # type: ignore[assignment]  # a QueryDict that is not changed any more
    timezone.activate(zone_of(request.user, request.COOKIES, request.tenant))
    response: HttpResponseBase = view(request, *match.args, **match.kwargs)
    response["X-Robots-Tag"] = "noindex"
    response["Referrer-Policy"] = "no-referrer"  # the address is the key
    add_never_cache_headers(response)
    return response
