"""The site map."""

from django.urls import include, path

from config.api import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("", include("audit.urls")),
    path("", include("tools_registry.urls")),
    path("", include("tenants.urls")),
]
