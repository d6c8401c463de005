"""The routes of identity providers."""

from django.urls import path

from tenants.identity import pages, resource, sso_only, views
from tenants.identity.saml.views import provider_acs, provider_metadata

urlpatterns = [
    path(
        ".well-known/oauth-protected-resource/mcp/<slug:slug>",
        resource.protected_resource,
        name="protected_resource",
    ),
    path("sign-in/with/<uuid:tenant_id>/<uuid:pk>", views.provider_start, name="provider_start"),
    path(
        "sign-in/with/<uuid:tenant_id>/<uuid:pk>/callback",
        views.provider_callback,
        name="provider_callback",
    ),
    path("sign-in/with/<uuid:tenant_id>/<uuid:pk>/acs", provider_acs, name="provider_acs"),
    path(
        "sign-in/with/<uuid:tenant_id>/<uuid:pk>/metadata",
        provider_metadata,
        name="provider_metadata",
    ),
    path("settings/security/confirm/provider", views.provider_confirm, name="provider_confirm"),
    path(
        "settings/security/providers/<uuid:pk>/connect",
        views.provider_connect,
        name="provider_connect",
    ),
    path(
        "settings/security/providers/<uuid:pk>/disconnect",
        views.provider_disconnect,
        name="provider_disconnect",
    ),
    path("settings/sign-in/sso-only", sso_only.sso_only_settings, name="sso_only_settings"),
    path("settings/sign-in/providers/new", pages.provider_new, name="provider_new"),
    path("settings/sign-in/providers/<uuid:pk>", pages.provider_detail, name="provider_detail"),
    path(
        "settings/sign-in/providers/<uuid:pk>/disable",
        pages.provider_disable,
        name="provider_disable",
    ),
    path(
        "settings/sign-in/providers/<uuid:pk>/enable",
        pages.provider_enable,
        name="provider_enable",
    ),
]
