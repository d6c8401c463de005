"""The routes of identity providers."""

from django.urls import URLPattern, path

from tenants.identity import pages, resource, sso_only, views
from tenants.identity.saml.views import provider_acs, provider_metadata


def _way(of: str) -> list[URLPattern]:
    """To a provider and back; those of the installation have no tenant in their addresses."""
    return [
        path(of, views.provider_start, name="provider_start"),
        path(f"{of}/callback", views.provider_callback, name="provider_callback"),
        path(f"{of}/acs", provider_acs, name="provider_acs"),
        path(f"{of}/metadata", provider_metadata, name="provider_metadata"),
    ]


urlpatterns = [
    path(
        ".well-known/oauth-protected-resource/mcp/<slug:slug>",
        resource.protected_resource,
        name="protected_resource",
    ),
    *_way("sign-in/with/<uuid:tenant_id>/<uuid:pk>"),
    *_way("sign-in/with/<uuid:pk>"),
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
