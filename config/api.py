"""The API object: its routers, one per app, and its error handlers."""

from ninja import NinjaAPI

from audit.api import router as audit_router
from tenants.api_auth import answer_refusal
from tenants.keys import KeyRefused
from tools_registry.api import router as registry_router

api = NinjaAPI(title="Tooltrail", version="1", urls_namespace="api", docs_url=None)
api.add_router("", audit_router)
api.add_router("", registry_router)
# Ninja's type allows the class as well as an instance; only instances are raised.
api.add_exception_handler(KeyRefused, answer_refusal)  # type: ignore[arg-type]
