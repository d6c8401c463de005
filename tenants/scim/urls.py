"""The routes of SCIM. The address names a provider; the key says of which tenant."""

from django.urls import path

from tenants.scim import views

_SERVICE = "scim/v2/<uuid:provider_id>"

urlpatterns = [
    path(f"{_SERVICE}/Users", views.users, name="scim_users"),
    path(f"{_SERVICE}/Users/.search", views.user_search, name="scim_user_search"),
    path(f"{_SERVICE}/Users/<uuid:pk>", views.user, name="scim_user"),
    path(f"{_SERVICE}/Groups", views.groups, name="scim_groups"),
    path(f"{_SERVICE}/Groups/.search", views.group_search, name="scim_group_search"),
    path(f"{_SERVICE}/Groups/<uuid:pk>", views.group, name="scim_group"),
    path(f"{_SERVICE}/.search", views.search, name="scim_search"),
    path(f"{_SERVICE}/ServiceProviderConfig", views.config, name="scim_config"),
    path(f"{_SERVICE}/ResourceTypes", views.types, name="scim_types"),
    path(f"{_SERVICE}/ResourceTypes/<str:name>", views.type_named, name="scim_type"),
    path(f"{_SERVICE}/Schemas", views.schemas, name="scim_schemas"),
    path(f"{_SERVICE}/Schemas/<str:name>", views.schema_named, name="scim_schema"),
    path(f"{_SERVICE}/<path:rest>", views.nothing, name="scim_other"),
    path(f"{_SERVICE}/", views.nothing, {"rest": ""}, name="scim_root"),
]
