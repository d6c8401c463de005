"""Acts that some tenants allow only to a person who has just proved who it is."""

from collections.abc import Callable

from allauth.account.decorators import reauthentication_required
from django.http import HttpResponseBase


def needs_fresh_factor[**P](
    view: Callable[P, HttpResponseBase],
) -> Callable[P, HttpResponseBase]:
    """Wrap a view inside `tenant_page`: in a tenant with `step_up` it needs a fresh confirmation.

    A person who has not confirmed within five minutes is asked for the second factor, or without
    one for the password, and the request is repeated after it. In the session of a provider, it is
    the provider that asks (`tenants.identity.views.provider_confirm`).
    """
    wrap = reauthentication_required(enabled=lambda request: request.tenant.step_up)
    wrapped: Callable[P, HttpResponseBase] = wrap(view)
    return wrapped
