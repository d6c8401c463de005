"""The site map."""

from django.conf import settings
from django.urls import include, path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from audit.otlp.views import receive_traces
from config.api import api
from config.theme import choose_theme
from tenants.admin_site import site

urlpatterns = [
    path("api/v1/", api.urls),
    path("v1/traces", receive_traces, name="otlp_traces"),  # what OTLP exporters expect
    path("admin/", site.urls),
    path("theme", choose_theme, name="theme"),
    # Where a document cannot name its icon (raw events, scripts) browsers ask for this one.
    path(
        "favicon.ico", require_safe(RedirectView.as_view(url=f"{settings.STATIC_URL}img/mark.svg"))
    ),
    path("", include("audit.urls")),
    path("", include("tools_registry.urls")),
    path("", include("tenants.urls")),
]

handler400 = "config.errors.bad_request"
handler403 = "config.errors.forbidden"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"
