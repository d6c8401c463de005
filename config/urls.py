"""The site map."""

from django.urls import include, path

from config.api import api
from config.theme import choose_theme
from tenants.admin_site import site

urlpatterns = [
    path("api/v1/", api.urls),
    path("admin/", site.urls),
    path("theme", choose_theme, name="theme"),
    path("", include("audit.urls")),
    path("", include("tools_registry.urls")),
    path("", include("tenants.urls")),
]

handler403 = "config.htmx.forbidden"
handler404 = "config.htmx.not_found"
