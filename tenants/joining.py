"""The page of an invitation's link: a person joins with an existing or a new account."""

from http import HTTPStatus

from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from tenants.access import SESSION_TENANT
from tenants.accounts.policy import is_tenants
from tenants.actions import record_action
from tenants.forms import ROLE_HELP, AccountForm
from tenants.identity.installation import enabled_providers
from tenants.identity.providers import with_paths
from tenants.invitations import InvitationOverError, accept, check_open, read_token
from tenants.members import AlreadyMemberError
from tenants.models import Invitation, Membership, Role, User
from tenants.scope import tenant_scope


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation_accept(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation to anyone with its link, and accept it on POST.

    A signed-in user accepts with that account; anyone else makes an account or signs in first.
    404 for an unknown link, 410 for a closed invitation, 409 if the user is already a member.
    """
    named = read_token(token)
    if named is None:
        raise Http404("no such invitation")
    user = request.user if isinstance(request.user, User) else None
    if is_tenants(request.session):
        raise PermissionDenied("Sign out first: your account belongs to an identity provider.")
    with tenant_scope(named.tenant_id):
        invitation = named.find(for_update=request.method == "POST")
        if invitation is None:
            raise Http404("no such invitation")
        form = None
        if user is None and not settings.BREAK_GLASS:
            form = AccountForm(request.POST or None, tenant=invitation.tenant)
        answer = _explain(request, invitation, user) or _accept(request, invitation, user, form)
        if isinstance(answer, HttpResponse):
            return answer
        user, is_new = answer
    if is_new:
        perform_login(request, user)
    request.session[SESSION_TENANT] = str(named.tenant_id)
    messages.success(request, f"You are now a member of {invitation.tenant.name}.")
    return redirect("home")


def _explain(
    request: HttpRequest, invitation: Invitation, user: User | None
) -> HttpResponse | None:
    """The page with the reason why the invitation cannot be accepted; None if it can be."""
    try:
        check_open(invitation, timezone.now())
    except InvitationOverError as error:
        return _page(request, invitation, HTTPStatus.GONE, over=str(error))
    if invitation.tenant.suspended_at is not None:
        suspended = "The operator of this installation suspended the tenant."
        return _page(request, invitation, HTTPStatus.GONE, over=suspended)
    if user and Membership.objects.filter(tenant_id=invitation.tenant_id, user=user).exists():
        return _page(request, invitation, HTTPStatus.CONFLICT, is_member=True)
    return None


def _accept(
    request: HttpRequest, invitation: Invitation, user: User | None, form: AccountForm | None
) -> HttpResponse | tuple[User, bool]:
    """The page with the form; or, once accepted, the user and whether the account is new."""
    if request.method != "POST" or (user is not None and user.has_initial_password):
        return _page(request, invitation, form=form)
    if user is not None:
        member = user
    else:
        if form is None or not form.is_valid():
            return _page(request, invitation, form=form)
        form.instance.email = invitation.email  # who has the mailed link has the address
        try:
            with transaction.atomic():
                member = form.save()
        except IntegrityError:  # another request took the name at the same time
            form.add_error("username", "This user name is already taken.")
            return _page(request, invitation, form=form)
    try:
        membership = accept(invitation, member)
    except AlreadyMemberError:  # through another invitation at the same time
        return _page(request, invitation, HTTPStatus.CONFLICT, is_member=True)
    record_action(
        invitation.tenant,
        member,
        "member.accept",
        member.get_username(),
        role=membership.role,
        invitation=invitation.label,
        invited_by=invitation.created_by.get_username() if invitation.created_by else None,
        is_new_account=user is None,
        rows=[membership, invitation],
    )
    return member, user is None


def _page(
    request: HttpRequest,
    invitation: Invitation,
    status: HTTPStatus = HTTPStatus.OK,
    **context: object,
) -> HttpResponse:
    context |= {
        "invitation": invitation,
        "role_help": ROLE_HELP[Role(invitation.role)],
        "providers": with_paths(enabled_providers(), "provider_start"),
    }
    return render(request, "tenants/invitation.html", context, status=status)
