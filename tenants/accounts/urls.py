"""The routes of second factors, passkeys and sessions. django-allauth looks them up by name."""

from allauth.account.views import reauthenticate
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from django.urls import path
from django.views.generic import RedirectView

from tenants.accounts.pages import account_page, entrance_page, security
from tenants.accounts.settings import sign_in_settings

_back = account_page(RedirectView.as_view(pattern_name="mfa_index"))

urlpatterns = [
    path("login/code", entrance_page(factors.authenticate), name="mfa_authenticate"),
    path("login/passkey", entrance_page(passkeys.login_webauthn), name="mfa_login_webauthn"),
    path("settings/sign-in", sign_in_settings, name="sign_in_settings"),
    path("settings/security", security, name="mfa_index"),
    path("settings/security/app", account_page(totp.activate_totp), name="mfa_activate_totp"),
    path(
        "settings/security/app/remove",
        account_page(totp.deactivate_totp),
        name="mfa_deactivate_totp",
    ),
    path("settings/security/passkeys", _back, name="mfa_list_webauthn"),
    path(
        "settings/security/passkeys/add",
        account_page(passkeys.add_webauthn),
        name="mfa_add_webauthn",
    ),
    path(
        "settings/security/passkeys/<int:pk>/rename",
        account_page(passkeys.edit_webauthn),
        name="mfa_edit_webauthn",
    ),
    path(
        "settings/security/passkeys/<int:pk>/remove",
        account_page(passkeys.remove_webauthn),
        name="mfa_remove_webauthn",
    ),
    path(
        "settings/security/codes",
        account_page(codes.view_recovery_codes),
        name="mfa_view_recovery_codes",
    ),
    path(
        "settings/security/codes/new",
        account_page(codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "settings/security/confirm",
        account_page(reauthenticate),
        name="account_reauthenticate",
    ),
    path(
        "settings/security/confirm/code",
        account_page(factors.reauthenticate),
        name="mfa_reauthenticate",
    ),
    path(
        "settings/security/confirm/passkey",
        account_page(passkeys.reauthenticate_webauthn),
        name="mfa_reauthenticate_webauthn",
    ),
]
