"""The pages of `tools_registry`."""

from django.urls import path

from tools_registry import deeds, draft_views, views
from tools_registry.exchange import import_views
from tools_registry.exchange import views as exchange

urlpatterns = [
    path("tools/create", deeds.tool_create, name="tool_create"),
    path("tools/export.json", exchange.registry_export, name="registry_export"),
    path("tools/import", import_views.registry_import, name="tool_import"),
    path("tools/import/<uuid:pk>", import_views.import_page, name="tool_import_page"),
    path("tools/import/<uuid:pk>/confirm", import_views.import_confirm, name="import_confirm"),
    path("tools/import/<uuid:pk>/look", import_views.import_look, name="import_look"),
    path("tools/import/<uuid:pk>/cancel", import_views.import_cancel, name="import_cancel"),
    path("tools/import/<uuid:pk>/discard", import_views.import_discard, name="import_discard"),
    path("tools/definitions", exchange.tool_definitions, name="tool_definitions_all"),
    path(
        "tools/definitions/<slug:provider>.json",
        exchange.tool_definitions,
        name="tool_definitions_all_file",
    ),
    path("tools/<uuid:pk>/definitions", exchange.tool_definitions, name="tool_definitions"),
    path(
        "tools/<uuid:pk>/definitions/<slug:provider>.json",
        exchange.tool_definitions,
        name="tool_definitions_file",
    ),
    path("tools/find", views.tool_find, name="tool_find"),
    path("tools/<uuid:pk>/diff", views.tool_diff, name="tool_diff"),
    path("tools/<uuid:pk>/arrivals", deeds.tool_arrivals, name="tool_arrivals"),
    path("tools/<uuid:pk>/describe", deeds.tool_describe, name="tool_describe"),
    path("tools/<uuid:pk>/<int:number>/<slug:deed>", deeds.version_deed, name="version_deed"),
    path("tools/<uuid:pk>", views.tool_detail, name="tool_detail"),
    path("tools/<uuid:pk>/<int:number>", views.tool_detail, name="tool_version"),
    path("tools/<uuid:pk>/draft", draft_views.draft_edit, name="draft_edit"),
    path("tools/<uuid:pk>/draft/begin", draft_views.draft_begin, name="draft_begin"),
    path("tools/<uuid:pk>/draft/check", draft_views.draft_check, name="draft_check"),
    path("tools/<uuid:pk>/draft/discard", draft_views.draft_discard, name="draft_discard"),
]
