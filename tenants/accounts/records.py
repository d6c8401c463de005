"""What people do with second factors and identities, as actions of the tenant where their session
opens.

Every process imports this module, so it imports nothing that only a sign-in needs.
"""

from typing import Any

from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from allauth.socialaccount.signals import social_account_added
from django.http import HttpRequest

from tenants.access import SESSION_TENANT
from tenants.actions import record_action
from tenants.models import Membership, User
from tenants.scope import tenant_scope
from tenants.sessions import choose, memberships_of, opened_by, record_session


def connect() -> None:
    """Record from now on what django-allauth's signals say."""
    signals.authenticator_added.connect(_added)
    signals.authenticator_removed.connect(_removed)
    signals.authenticator_reset.connect(_reset)
    signals.authentication_failed.connect(_failed)
    social_account_added.connect(_connected)


def record_account(request: HttpRequest, user: User, verb: str, **details: Any) -> None:
    """Record what a user did to the own account, in the session's tenant. No scope may be open."""
    chosen = request.session.get(SESSION_TENANT)
    memberships = opened_by(request.session, memberships_of(user.pk))
    membership: Membership | None = choose(memberships, chosen, user.last_tenant_id)
    if membership is not None:
        with tenant_scope(membership.tenant_id):
            record_action(membership.tenant, user, verb, user.get_username(), **details)


def _added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    record_account(request, user, "factor.add", factor=str(authenticator.type))


def _removed(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    record_account(request, user, "factor.remove", factor=str(authenticator.type))


def _reset(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    record_account(request, user, "factor.renew", factor=str(authenticator.type))


def _connected(request: HttpRequest, sociallogin: Any, **_: Any) -> None:
    record_account(
        request, sociallogin.user, "identity.connect", provider=sociallogin.provider.row.name
    )


def _failed(user: User, reauthentication: bool, **_: Any) -> None:
    reason = "wrong code for a confirmation" if reauthentication else "wrong code"
    record_session(user, "session.refuse", reason=reason)
