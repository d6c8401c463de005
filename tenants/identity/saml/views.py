"""Coming back from a SAML provider, and this server's metadata for it."""

from allauth.socialaccount.helpers import complete_social_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from tenants.identity.saml import SamlError
from tenants.identity.saml.provider import SAMLProvider, own_metadata
from tenants.identity.views import with_provider
from tenants.models import AnyProvider, ProviderKind

_RESPONSE_MAX = 500_000
"""Characters of a response, as Base64."""


# Only a response to a request of this browser's session is accepted, so no token is needed.
@csrf_exempt
@require_POST
@with_provider
def provider_acs(request: HttpRequest, provider: AnyProvider) -> HttpResponseBase:
    """Take somebody back from the provider."""
    _check_kind(provider)
    sent, request_id = request.POST.get("SAMLResponse", ""), request.POST.get("RelayState", "")
    if len(sent) > _RESPONSE_MAX:
        raise SamlError(f"The response has more than {_RESPONSE_MAX:,} characters.")
    saml = SAMLProvider(request, provider)
    state = saml.pending(request, request_id)
    if state is None and "again" not in request.POST:
        # Browsers send no cookies with a form of another site. Our own page sends it once more.
        context = {"provider": provider, "sent": sent, "request_id": request_id[:100]}
        return render(request, "identity/resend.html", context)
    if state is None:
        raise SamlError("The response answers no sign-in that began in this browser.")
    login = saml.login_of(request, sent, request_id)
    login.state = state
    answer: HttpResponseBase = complete_social_login(request, login)
    return answer


@require_safe
@with_provider
def provider_metadata(request: HttpRequest, provider: AnyProvider) -> HttpResponseBase:
    """Return this server's metadata, for the provider. It is no secret."""
    _check_kind(provider)
    metadata = own_metadata(request, provider)
    return HttpResponse(metadata, content_type="application/samlmetadata+xml")


def _check_kind(provider: AnyProvider) -> None:
    if provider.kind != ProviderKind.SAML:
        raise Http404("no SAML provider")
