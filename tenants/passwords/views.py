"""Asking for a link, choosing a new password with it, and the address of an account."""

from http import HTTPStatus
from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from tenants.accounts.pages import account_page
from tenants.accounts.records import record_account
from tenants.mail.outgoing import defer, is_on, may_mail
from tenants.models import User
from tenants.passwords.forms import AddressForm, ForgottenForm, NewPasswordForm
from tenants.passwords.links import address_in, mail_address
from tenants.sessions import record_session

_form_methods = require_http_methods(["GET", "HEAD", "POST"])
_TOO_MANY = "Too many mails were asked for. Try again in an hour."


@never_cache
@_form_methods
def password_forgotten(request: HttpRequest) -> HttpResponseBase:
    """Ask for a link for a new password.

    The worker looks whose address it is: neither the answer nor its time tells whether one exists.
    """
    form = ForgottenForm(request.POST or None)
    is_sent, status = False, HTTPStatus.OK
    if is_on() and not settings.BREAK_GLASS and form.is_valid():
        address = form.cleaned_data["address"]
        is_sent = may_mail(request, address)
        if is_sent:
            defer("tenants.tasks.mail_password_links", address)
        else:
            form.add_error(None, _TOO_MANY)
            status = HTTPStatus.TOO_MANY_REQUESTS
    is_possible = is_on() and not settings.BREAK_GLASS
    context = {"form": form, "is_sent": is_sent, "is_possible": is_possible}
    return render(request, "passwords/forgotten.html", context, status=status)


class _Reset(PasswordResetConfirmView):
    template_name = "passwords/reset.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("account_login")

    def form_valid(self, form: NewPasswordForm) -> HttpResponse:  # type: ignore[override]  # ours
        response = super().form_valid(form)
        user = form.user
        # The new password has ended them; this takes them off the list.
        for session in UserSession.objects.filter(user_id=user.pk):
            session.end()
        record_session(user, "password.reset")
        messages.success(self.request, "The new password is stored. Sign in with it.")
        return response


password_reset = _form_methods(_Reset.as_view())


@account_page
@reauthentication_required  # type: ignore[untyped-decorator]  # django-allauth has no types
def account_address(request: HttpRequest) -> HttpResponseBase:
    """Show the account's address; mail a link to a new one, or remove it."""
    user = request.user
    assert isinstance(user, User)
    form = AddressForm(request.POST or None, initial={"address": user.email})
    if form.is_valid():
        address = form.cleaned_data["address"]
        if not address:
            _store(request, user, "")
            return redirect("mfa_index")
        if not is_on():
            form.add_error("address", "This server sends no mail.")
        elif not may_mail(request, address):
            form.add_error("address", _TOO_MANY)
        else:
            mail_address(user, address)
            messages.info(request, "A mail is on its way. Open its link in this browser.")
            return redirect("mfa_index")
    return TemplateResponse(request, "passwords/address.html", {"form": form})


@account_page
def address_confirm(request: HttpRequest, token: str) -> HttpResponseBase:
    """Take an address whose link was opened by the account's owner."""
    user = request.user
    assert isinstance(user, User)
    address = address_in(token, user)
    if address is None:
        raise Http404("no such link")
    if request.method == "POST":
        _store(request, user, address)
        return redirect("mfa_index")
    context: dict[str, Any] = {"address": address}
    return TemplateResponse(request, "passwords/address_confirm.html", context)


def _store(request: HttpRequest, user: User, address: str) -> None:
    if user.email != address:
        user.email = address
        user.save(update_fields=["email"])
        # Without the address: what is in the ledger stays there.
        record_account(request, user, "account.address", is_set=bool(address))
    messages.success(request, "Saved." if address else "The address is removed.")
