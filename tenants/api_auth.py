"""API key authentication of requests: `Authorization: Bearer tt_…` or `x-api-key: tt_…`.

Reads the key from the request and writes the error response. `tenants.keys` checks the key.
"""

from typing import cast

from django.http import HttpRequest, HttpResponse
from ninja.security import HttpBearer

from config.http.problems import problem
from config.http.proxies import client_address
from tenants.keys import ApiKeyIdentity, KeyRefused, authenticate
from tenants.models import Scope, Tenant


class ApiRequest(HttpRequest):
    """The request that an endpoint behind `ApiKeyAuth` gets."""

    auth: ApiKeyIdentity


class ApiKeyAuth(HttpBearer):
    """Accepts requests with a key that has `scope`; sets `request.auth` to its ApiKeyIdentity.

    Raises KeyRefused, which `answer_refusal` turns into the response.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> ApiKeyIdentity:
        """The identity of the request's key. Raises KeyRefused."""
        kind, _, token = request.headers.get(self.header, "").partition(" ")
        if kind.lower() != self.openapi_scheme:
            token = request.headers.get("x-api-key", "")
            if not token.strip():
                raise KeyRefused(401, "missing_key", "Send an API key: Authorization: Bearer tt_…")
        return self.authenticate(request, token.strip())

    def authenticate(self, request: HttpRequest, token: str) -> ApiKeyIdentity:
        """The identity of the key `token`. Raises KeyRefused."""
        return authenticate(token, self.scope, client_address(request))


def tenant_of(request: HttpRequest) -> Tenant:
    """The tenant of the request's key. Needs its scope."""
    return Tenant.objects.get(pk=cast(ApiRequest, request).auth.tenant_id)


def answer_refusal(request: HttpRequest, refusal: KeyRefused) -> HttpResponse:
    """The response for a refused key: 401 or 403, as problem details."""
    headers = {"WWW-Authenticate": 'Bearer realm="tooltrail"'} if refusal.status == 401 else {}
    return problem(refusal.code, refusal.message, headers=headers)
