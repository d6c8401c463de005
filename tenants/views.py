"""Sign-in, the tenant switcher, and the settings pages: keys, members, password."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods, require_POST

from config.http.ordering import Key, sorted_table
from tenants.access import (
    SESSION_TENANT,
    TenantRequest,
    enter_tenant,
    tenant_page,
)
from tenants.accounts.policy import LEAVE_AT, NOT_YOURS, is_tenants
from tenants.actions import record_view
from tenants.admin_acts import (
    end_key,
    end_membership,
    give_role,
    invite_member,
    make_key,
    replace_key,
    withdraw_invitation,
)
from tenants.forms import ROLE_HELP, InvitationForm, KeyForm, PasswordForm, RoleForm, RotationForm
from tenants.identity.installation import enabled_providers
from tenants.identity.providers import providers_at, with_paths
from tenants.invitations import open_invitations
from tenants.keys import IDLE_FOR, idle_keys
from tenants.mail.outgoing import is_on, may_mail
from tenants.members import LastAdminError, people_of
from tenants.models import AnyProvider, ApiKey, Invitation, Membership, Role, User
from tenants.sessions import record_session
from tenants.sign_in import SignInForm

_form_methods = require_http_methods(["GET", "HEAD", "POST"])
_LAST_ADMIN = "Give another member the role admin first, or name another one for SSO only."
_KEYS: Mapping[str, Key[ApiKey]] = {
    "name": lambda key: key.name.casefold(),
    "scopes": lambda key: ", ".join(key.scopes),
    "owner": lambda key: key.owner and key.owner.get_username().casefold(),
    "created": lambda key: key.created_at,
    "expires": lambda key: key.expires_at,
    "used": lambda key: key.last_used_at,
}
_MEMBERS: Mapping[str, Key[Membership]] = {
    "user": lambda member: member.user.get_username().casefold(),
    "role": lambda member: member.get_role_display(),
    "since": lambda member: member.created_at,
}
_INVITATIONS: Mapping[str, Key[Invitation]] = {
    "for": lambda one: one.label.casefold(),
    "role": lambda one: one.get_role_display(),
    "by": lambda one: one.created_by and one.created_by.get_username().casefold(),
    "until": lambda one: one.expires_at,
}
"""The columns by which keys, members and invitations are sorted."""


class _SignIn(LoginView):
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        slug = self.kwargs.get("slug")
        of_tenant = [] if slug is None else providers_at(slug)
        providers: list[AnyProvider] = [*of_tenant, *enabled_providers()]
        return {
            **super().get_context_data(**kwargs),
            "providers": with_paths(providers, "provider_start"),
            # Only one account has a password that counts. Its form is not what people look for.
            "sends_links": is_on() and not settings.BREAK_GLASS,
            "hides_password": bool(settings.BREAK_GLASS) and "password" not in self.request.GET,
        }

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        # django-allauth asks for the second factor before it opens the session.
        response: HttpResponse = perform_login(
            self.request, form.get_user(), redirect_url=self.get_success_url()
        )
        return response


sign_in = _form_methods(
    _SignIn.as_view(
        template_name="tenants/sign_in.html",
        authentication_form=SignInForm,
        redirect_authenticated_user=True,
    )
)
# Who is signed in elsewhere may need the tenant's provider.
tenant_sign_in = _form_methods(
    _SignIn.as_view(template_name="tenants/sign_in.html", authentication_form=SignInForm)
)


class _SignOut(LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if isinstance(request.user, User):
            chosen = request.session.get(SESSION_TENANT)
            record_session(request.user, "session.end", chosen=chosen, session=request.session)
        leave_at = request.session.get(LEAVE_AT)
        response: HttpResponse = super().post(request, *args, **kwargs)
        if leave_at and "next" not in request.POST:
            # The provider's own session would sign in whoever presses its button next.
            return render(request, "identity/signed_out.html", {"address": leave_at})
        return response


sign_out = require_POST(_SignOut.as_view())


@require_POST
@tenant_page()
def tenant_switch(request: TenantRequest) -> HttpResponseBase:
    """Switch the session to another of the user's tenants; 404 if the user is not a member.

    Redirects to the home page, because the open page belongs to the previous tenant.
    """
    wanted = request.POST.get("tenant", "")
    if wanted not in {str(one.tenant_id) for one in request.memberships}:
        raise Http404("no such tenant")
    user = request.user
    if wanted != str(request.tenant.pk):
        # Recorded only in the new tenant, in that tenant's scope: after this one is closed.
        session = request.session
        transaction.on_commit(
            lambda: record_session(user, "session.switch", chosen=wanted, session=session)
        )
    request.session[SESSION_TENANT] = wanted
    user.last_tenant_id = UUID(wanted)
    user.save(update_fields=["last_tenant_id"])
    return redirect("home")


@_form_methods
@tenant_page(role=Role.ADMIN)
def key_list(request: TenantRequest) -> HttpResponseBase:
    """All keys of the tenant, and the form for a new one; only its response shows the new key."""
    form = KeyForm(request.POST or None, tenant=request.tenant)
    new_key: NewKey | None = None
    if form.is_valid():
        _, text = make_key(request.tenant, request.user, form.wanted)
        form, new_key = KeyForm(tenant=request.tenant), NewKey(text)
    return _key_page(request, form, new_key)


@require_POST
@tenant_page(role=Role.ADMIN)
def key_rotate(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Create a key that replaces another; only this response shows the new key."""
    old = get_object_or_404(ApiKey, tenant=request.tenant, pk=pk)
    form = RotationForm(request.POST)
    if not form.is_valid():
        for field, errors in form.errors.items():
            problems = " ".join(map(str, errors))
            messages.error(request, f"{field.replace('_', ' ').capitalize()}: {problems}")
        return redirect("key_list")
    try:
        _, text = replace_key(
            request.tenant,
            request.user,
            old,
            overlap=form.cleaned_data["overlap"],
            expires_at=form.cleaned_data["expires_on"],
        )
    except ValueError as error:
        messages.error(request, f"{old.name}: {error}.")
        return redirect("key_list")
    return _key_page(request, KeyForm(tenant=request.tenant), NewKey(text, old))


@dataclass(frozen=True)
class NewKey:
    """The text of a new key, for the one page that shows it, and the key that it replaces."""

    text: str
    replaces: ApiKey | None = None


def _key_page(request: TenantRequest, form: KeyForm, new_key: NewKey | None) -> HttpResponseBase:
    now = timezone.now()
    own = ApiKey.objects.filter(tenant=request.tenant)
    replacing = own.filter(pk=OuterRef("replaced_by_id")).values("key_id")
    keys = (
        own.select_related("created_by", "owner")
        .annotate(replaced_by=Subquery(replacing))
        .order_by("-created_at")
    )
    context = {
        "form": form,
        "keys": sorted_table(request, keys, _KEYS, "created", page=reverse("key_list")),
        "new_key": new_key,
        "now": now,
        "idle": {key.pk for key in idle_keys(request.tenant, now)},
        "idle_days": IDLE_FOR.days,
        "overlaps": [(value, label) for value, (label, _) in RotationForm.OVERLAPS.items()],
    }
    return render(request, "tenants/key_list.html", context)


@require_POST
@tenant_page(role=Role.ADMIN)
def key_revoke(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Revoke a key permanently."""
    key = get_object_or_404(ApiKey, tenant=request.tenant, pk=pk)
    end_key(request.tenant, request.user, key)
    messages.success(request, f"Key {key.name} revoked.")
    return redirect("key_list")


@_form_methods
@tenant_page(role=Role.ADMIN)
def member_list(request: TenantRequest) -> HttpResponseBase:
    """Members, open invitations, and the form to invite; only its response shows the new link."""
    form = InvitationForm(request.POST or None)
    new_link: NewLink | None = None
    if form.is_valid() and _may_mail(request, form):
        given = form.cleaned_data
        invitation, token = invite_member(
            request.tenant,
            request.user,
            given["label"],
            given["role"],
            email=given.get("email", ""),
        )
        address = reverse("invitation_accept", args=[token]) if token else ""
        shown = request.build_absolute_uri(address) if token else ""
        form, new_link = InvitationForm(), NewLink(shown, invitation)
    members = people_of(request.tenant).order_by("user__username")
    invitations = open_invitations(request.tenant, timezone.now())
    context = {
        "form": form,
        "members": sorted_table(request, members, _MEMBERS, "user"),
        "invitations": sorted_table(
            request, invitations, _INVITATIONS, "until", "sort-invitations"
        ),
        "new_link": new_link,
        "roles": [(role, ROLE_HELP[role]) for role in Role],
    }
    return render(request, "tenants/member_list.html", context)


@dataclass(frozen=True)
class NewLink:
    """The link of an invitation, for the one page that shows it."""

    address: str
    """Empty: it is mailed."""
    invitation: Invitation


def _may_mail(request: TenantRequest, form: InvitationForm) -> bool:
    address = form.cleaned_data.get("email", "")
    if address and not may_mail(request, address):
        form.add_error("email", "Too many mails were sent. Try again in an hour.")
        return False
    return True


@require_POST
@tenant_page(role=Role.ADMIN)
def invitation_revoke(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Revoke an open invitation."""
    invitation = get_object_or_404(Invitation, tenant=request.tenant, pk=pk)
    if withdraw_invitation(request.tenant, request.user, invitation):
        messages.success(request, f"Invitation for {invitation.label} revoked.")
    else:
        messages.error(request, f"The invitation for {invitation.label} is no longer open.")
    return redirect("member_list")


@require_POST
@tenant_page(role=Role.ADMIN)
def member_role(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Change a member's role."""
    member = _get_member(request, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Unknown role.")
        return redirect("member_list")
    role = form.cleaned_data["role"]
    try:
        give_role(request.tenant, request.user, member, role)
    except LastAdminError:
        messages.error(
            request,
            f"{member.user} is the last admin. {_LAST_ADMIN}",
        )
    else:
        messages.success(request, f"{member.user} is now {role.label.lower()}.")
    return redirect("member_list")


@require_POST
@tenant_page(role=Role.ADMIN)
def member_remove(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Remove a member; the account and its memberships in other tenants stay."""
    member = _get_member(request, pk)
    try:
        end_membership(request.tenant, request.user, member)
    except LastAdminError:
        messages.error(
            request,
            f"{member.user} is the last admin. {_LAST_ADMIN}",
        )
    else:
        messages.success(request, f"{member.user} is no longer a member.")
    return redirect("member_list" if member.user_id != request.user.pk else "home")


@_form_methods
def password_change(request: HttpRequest) -> HttpResponseBase:
    """Change the signed-in user's password. The user needs no tenant."""
    user = request.user
    if is_tenants(request.session):
        raise PermissionDenied(NOT_YOURS)
    if not isinstance(user, User) or enter_tenant(request) is not None:
        return _password_change_of_member(request)
    response = _PASSWORD_CHANGE(request)
    if response.status_code == HTTPStatus.FOUND:
        record_session(user, "password.change")
    add_never_cache_headers(response)
    return response


@tenant_page()
def _password_change_of_member(request: TenantRequest) -> HttpResponseBase:
    response = _PASSWORD_CHANGE(request)
    if response.status_code == HTTPStatus.FOUND:
        name = request.user.get_username()
        record_view(request.tenant.pk, request.user, "password.change", name)
    return response


_PASSWORD_CHANGE = PasswordChangeView.as_view(
    template_name="tenants/password_change.html",
    form_class=PasswordForm,
    success_url=reverse_lazy("home"),
)


def _get_member(request: TenantRequest, pk: UUID) -> Membership:
    return get_object_or_404(people_of(request.tenant), pk=pk)
