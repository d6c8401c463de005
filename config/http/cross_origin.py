"""Requests of pages of other origins: refused by browsers unless an operator named the origin.

`TOOLTRAIL_CORS_ORIGINS` names origins whose scripts may use the API and `/mcp`. Without it no
answer has a header about origins. Cookies are never allowed: both know only keys and tokens.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers

from config.http.problems import API

_MCP = "/mcp"
_PATHS = (API, "/v1/", f"{_MCP}/", "/.well-known/oauth-protected-resource/")
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_SENT = ", ".join(
    (
        *("Authorization", "X-API-Key", "Content-Type", "Content-Encoding"),
        *("Idempotency-Key", "If-None-Match", "Prefer"),
        *("Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID"),
    )
)
_SHOWN = ", ".join(
    (
        *("Deprecation", "ETag", "Link", "Location", "Preference-Applied", "RateLimit"),
        *("RateLimit-Policy", "Retry-After", "Sunset", "X-Request-ID"),
        *("Mcp-Session-Id", "WWW-Authenticate"),
    )
)
_SECONDS = "600"  # how long a browser remembers the answer to a preflight request


class CrossOriginMiddleware:
    """Adds CORS headers to answers of the API and of `/mcp`, and answers preflight requests."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_open = request.path == _MCP or request.path.startswith(_PATHS)
        if not settings.CORS_ORIGINS or not is_open:
            return self.get_response(request)
        origin = request.headers.get("Origin", "")
        is_allowed = origin in settings.CORS_ORIGINS
        wanted = request.headers.get("Access-Control-Request-Method")
        if is_allowed and wanted and request.method == "OPTIONS":
            response: HttpResponseBase = HttpResponse(status=204)
            response["Access-Control-Allow-Methods"] = _METHODS
            response["Access-Control-Allow-Headers"] = _SENT
            response["Access-Control-Max-Age"] = _SECONDS
        else:
            response = self.get_response(request)
        patch_vary_headers(response, ["Origin"])
        if is_allowed:
            response["Access-Control-Allow-Origin"] = origin
            response["Access-Control-Expose-Headers"] = _SHOWN
        return response
