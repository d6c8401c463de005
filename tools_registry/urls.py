"""The pages of `tools_registry`."""

from django.urls import path

from tools_registry import deeds, draft_views, views

urlpatterns = [
    path("tools/create", deeds.tool_create, name="tool_create"),
    path("tools/find", views.tool_find, name="tool_find"),
    path("tools/<uuid:pk>/diff", views.tool_diff, name="tool_diff"),
    path("tools/<uuid:pk>/describe", deeds.tool_describe, name="tool_describe"),
    path("tools/<uuid:pk>/<int:number>/<slug:deed>", deeds.version_deed, name="version_deed"),
    path("tools/<uuid:pk>", views.tool_detail, name="tool_detail"),
    path("tools/<uuid:pk>/<int:number>", views.tool_detail, name="tool_version"),
    path("tools/<uuid:pk>/draft", draft_views.draft_edit, name="draft_edit"),
    path("tools/<uuid:pk>/draft/begin", draft_views.draft_begin, name="draft_begin"),
    path("tools/<uuid:pk>/draft/check", draft_views.draft_check, name="draft_check"),
    path("tools/<uuid:pk>/draft/discard", draft_views.draft_discard, name="draft_discard"),
]
