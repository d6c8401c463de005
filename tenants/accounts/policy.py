"""What a tenant asks of a session: a second factor, and an end. Rules without database or clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY

from tenants.models import OF_INSTALLATION, Membership, User

SIGNED_IN_AT = "signed_in_at"
"""The session's key for the instant of the sign-in, in Unix seconds."""
SEEN_AT = "seen_at"
"""The session's key for the instant of its last page, exact to a minute, in Unix seconds."""
PROVIDER = "identity_provider"
"""The session's key for the key of the provider that opened it (`tenants.models.provider_key`)."""
LED_TO = "provider_led_to"
"""The session's key for the ids of the tenants to which the groups of a provider of the
installation lead."""
LEAVE_AT = "provider_leave_at"
"""The session's key for the address at which that provider ends its own session; '': unknown."""
PROVIDER_ASKED_FACTOR = "provider_asked_factor"
"""The session's key for whether that provider asks for a second factor itself."""
PROVIDER_CONFIRMED_AT = "provider_confirmed_at"
"""The session's key for when that provider last asked again who it is, in Unix seconds."""
NOT_YOURS = "This session is from an identity provider, which manages your password and factors."
_METHODS = "account_authentication_methods"  # django-allauth's record of what somebody proved
_METHODS_OF = "account_authentication_methods_user"  # and who that was


@dataclass(frozen=True)
class Refusal:
    """Why a session does not get into a tenant."""

    is_over: bool
    """Whether the session has ended; otherwise something is missing."""
    reason: str
    needs_provider: bool = False
    """Whether it is a sign-in with a provider of the tenant that is missing, not a factor."""


def why_refused(
    session: Mapping[str, Any], membership: Membership, now: datetime
) -> Refusal | None:
    """Return why this session may not open the tenant's pages now; None if it may.

    A session from before the tenant set a limit has no instants, so it is over.
    """
    tenant = membership.tenant
    hours, minutes = tenant.session_max_hours, tenant.session_idle_minutes
    if hours is not None and _age(session, SIGNED_IN_AT, now) > timedelta(hours=hours):
        return Refusal(True, f"{tenant.name} ends sessions {hours} hours after sign-in.")
    # The instant of the last page is exact to a minute, so that not every page writes it.
    if minutes is not None and _age(session, SEEN_AT, now) > timedelta(minutes=minutes + 1):
        return Refusal(True, f"{tenant.name} ends sessions that are idle for {minutes} minutes.")
    is_local = PROVIDER not in session
    if settings.BREAK_GLASS and is_local and not opens_by_password(membership.user):
        return Refusal(False, "Sign in with an identity provider.", needs_provider=True)
    may_break = membership.breaks_glass and is_local
    if tenant.sso_only and not may_break and not _is_led_by_provider(session, membership):
        reason = f"{tenant.name} asks you to sign in with its provider."
        return Refusal(False, reason, needs_provider=True)
    if membership.role in tenant.second_factor_roles and not has_second_factor(session):
        return Refusal(False, f"{tenant.name} requires a second factor for your role.")
    return None


def opens(session: Mapping[str, Any], membership: Membership) -> bool:
    """Whether a session may open a membership's tenant at all.

    The provider of a tenant opens only that tenant, as it could name anybody. One of the
    installation opens those to which the person was invited, and those to which its groups led at
    this sign-in. A membership that a provider made is open only to its sessions.
    """
    opener: str = session.get(PROVIDER, "")
    made_by = membership.made_by
    if is_tenants(session):
        return opener.partition("/")[0] == str(membership.tenant_id) and made_by in ("", opener)
    return not made_by or (made_by == opener and _is_led_by_provider(session, membership))


def is_tenants(session: Mapping[str, Any]) -> bool:
    """Whether the provider of a tenant opened this session: it reaches nothing of the account."""
    return session.get(PROVIDER, "").partition("/")[0] not in ("", OF_INSTALLATION)


def breaks_glass(session: Mapping[str, Any], membership: Membership) -> bool:
    """Whether this session is in the tenant only because its account may break the glass."""
    if PROVIDER in session:
        return False
    if membership.tenant.sso_only and membership.breaks_glass:
        return True
    return bool(settings.BREAK_GLASS) and opens_by_password(membership.user)


def opens_by_password(user: User) -> bool:
    """Whether password and passkey open sessions of an account: with `BREAK_GLASS`, only of one."""
    return settings.BREAK_GLASS in ("", user.get_username())


def _is_led_by_provider(session: Mapping[str, Any], membership: Membership) -> bool:
    """Whether the tenant's own provider opened the session, or the groups of one of the
    installation lead to the tenant."""
    if is_tenants(session):
        return True  # `opens` has compared the tenant
    return str(membership.tenant_id) in session.get(LED_TO, ())


def has_second_factor(session: Mapping[str, Any]) -> bool:
    """Whether the person of this session has shown a second factor or a passkey.

    With a provider that asks for one, the sign-in suffices. The record is of another account after
    a sign-in with a passkey whose account is closed.
    """
    if session.get(PROVIDER_ASKED_FACTOR):
        return True
    if session.get(_METHODS_OF) != session.get(SESSION_KEY):
        return False
    return any(each.get("method") == "mfa" for each in session.get(_METHODS, ()))


def is_confirmed_by_provider(session: Mapping[str, Any], now: datetime) -> bool:
    """Whether the provider of this session has asked again who it is, within five minutes."""
    fresh = timedelta(seconds=settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)
    return PROVIDER in session and _age(session, PROVIDER_CONFIRMED_AT, now) < fresh


def _age(session: Mapping[str, Any], name: str, now: datetime) -> timedelta:
    at = session.get(name)
    if at is None:
        return timedelta.max
    return timedelta(seconds=now.timestamp() - at)
