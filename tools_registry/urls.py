"""The pages of `tools_registry`."""

from django.urls import path

from tools_registry.views import drafts, imports, tools, version_actions
from tools_registry.views import exports as exchange

urlpatterns = [
    path("tools/create", version_actions.tool_create, name="tool_create"),
    path("tools/export.json", exchange.registry_export, name="registry_export"),
    path("tools/import", imports.registry_import, name="tool_import"),
    path("tools/import/<uuid:pk>", imports.import_page, name="tool_import_page"),
    path("tools/import/<uuid:pk>/confirm", imports.import_confirm, name="import_confirm"),
    path("tools/import/<uuid:pk>/preview", imports.import_preview, name="import_preview"),
    path("tools/import/<uuid:pk>/cancel", imports.import_cancel, name="import_cancel"),
    path("tools/import/<uuid:pk>/discard", imports.import_discard, name="import_discard"),
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
    path("tools/find", tools.tool_find, name="tool_find"),
    path("tools/<uuid:pk>/diff", tools.tool_diff, name="tool_diff"),
    path("tools/<uuid:pk>/arrivals", version_actions.tool_arrivals, name="tool_arrivals"),
    path("tools/<uuid:pk>/describe", version_actions.tool_describe, name="tool_describe"),
    path(
        "tools/<uuid:pk>/<int:number>/<slug:action>",
        version_actions.version_action,
        name="version_action",
    ),
    path("tools/<uuid:pk>", tools.tool_detail, name="tool_detail"),
    path("tools/<uuid:pk>/<int:number>", tools.tool_detail, name="tool_version"),
    path("tools/<uuid:pk>/draft", drafts.draft_edit, name="draft_edit"),
    path("tools/<uuid:pk>/draft/begin", drafts.draft_begin, name="draft_begin"),
    path("tools/<uuid:pk>/draft/check", drafts.draft_check, name="draft_check"),
    path("tools/<uuid:pk>/draft/discard", drafts.draft_discard, name="draft_discard"),
]
