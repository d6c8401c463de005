"""The URLs of the site."""

from django.conf import settings
from django.urls import include, path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

import tools_registry.admin  # noqa: F401  # it adds its pages to the site
from audit.intake.otlp.signals import SIGNALS
from audit.intake.otlp.views import receive
from audit.mcp.transport import serve_keys, serve_people
from audit.pages.settings.preferences import preferences
from config.api import api
from config.api_docs import api_docs
from config.documentation import documentation
from config.openapi import openapi_json
from tenants.admin_site import site
from tenants.theme_views import choose_theme

urlpatterns = [
    path("api/v1/openapi.json", openapi_json, name="openapi_json"),
    path("api/v1/docs", api_docs, name="api_docs"),
    path("api/v1/", api.urls),
    *(path(each.removeprefix("/"), receive) for each in SIGNALS),  # what OTLP exporters expect
    path("mcp", serve_keys, name="mcp"),
    path("mcp/<slug:slug>", serve_people, name="mcp_of_tenant"),
    path("docs", require_safe(RedirectView.as_view(pattern_name="documentation_home"))),
    path("docs/", documentation, name="documentation_home"),
    path("docs/<path:path>", documentation, name="documentation"),
    path("admin/", site.urls),
    path("theme", choose_theme, name="theme"),
    path("settings/preferences", preferences, name="preferences"),
    # Browsers request this icon for documents that name none (raw events, scripts).
    path(
        "favicon.ico", require_safe(RedirectView.as_view(url=f"{settings.STATIC_URL}img/mark.svg"))
    ),
    path("", include("audit.pages.urls")),
    path("", include("tools_registry.urls")),
    path("", include("tenants.urls")),
]

handler400 = "config.http.errors.bad_request"
handler403 = "config.http.errors.forbidden"
handler404 = "config.http.errors.not_found"
handler500 = "config.http.errors.server_error"
