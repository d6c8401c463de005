"""API keys at the API's door: `Authorization: Bearer tt_…`.

What a key is and opens is `tenants.keys`'; this reads it from the request and words a refusal.
"""

from django.http import HttpRequest, HttpResponse
from ninja.security import HttpBearer

from config.http.problems import problem
from tenants.keys import ApiKeyIdentity, KeyRefused, authenticate
from tenants.models import Scope


class ApiRequest(HttpRequest):
    """What an endpoint behind `ApiKeyAuth` is called with."""

    auth: ApiKeyIdentity


class ApiKeyAuth(HttpBearer):
    """Lets in whoever holds a key with `scope`; `request.auth` is then an ApiKeyIdentity.

    Raises KeyRefused, which `answer_refusal` turns into the answer.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> ApiKeyIdentity:
        """The identity behind the request's key."""
        kind, _, token = request.headers.get(self.header, "").partition(" ")
        if kind.lower() != self.openapi_scheme:
            raise KeyRefused(401, "missing_key", "Send an API key: Authorization: Bearer tt_…")
        return self.authenticate(request, token.strip())

    def authenticate(self, request: HttpRequest, token: str) -> ApiKeyIdentity:
        """The identity behind a token."""
        return authenticate(token, self.scope)


def answer_refusal(request: HttpRequest, refusal: KeyRefused) -> HttpResponse:
    """401 or 403, as problem details."""
    headers = {"WWW-Authenticate": 'Bearer realm="tooltrail"'} if refusal.status == 401 else {}
    return problem(refusal.code, refusal.message, headers=headers)
