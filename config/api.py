"""The API object: its routers, one per app, and its error handlers."""

from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from ninja import NinjaAPI

from audit.api import router as audit_router
from audit.calls_api import router as calls_router
from audit.latency_api import router as latency_router
from audit.repeats_api import router as repeats_router
from audit.violations_api import router as violations_router
from config.errors import RETRY_AFTER_SECONDS
from tenants.api_auth import answer_refusal
from tenants.keys import KeyRefused
from tools_registry.api import router as registry_router

api = NinjaAPI(title="Tooltrail", version="1", urls_namespace="api", docs_url=None)
api.add_router("", audit_router)
api.add_router("", calls_router)
api.add_router("", violations_router)
api.add_router("", latency_router)
api.add_router("", repeats_router)
api.add_router("", registry_router)
# Ninja's type allows the class as well as an instance; only instances are raised.
api.add_exception_handler(KeyRefused, answer_refusal)  # type: ignore[arg-type]


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def answer_unavailable(request: HttpRequest, error: Exception) -> JsonResponse:
    """503: the database is away, and nothing has been acknowledged."""
    return JsonResponse(
        {"code": "unavailable", "message": "The database cannot be reached. Try again."},
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )
