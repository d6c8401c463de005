"""The pages of `tools_registry`."""

from django.urls import path

from tools_registry import views

urlpatterns = [
    path("tools/", views.tool_list, name="tool_list"),
    path("tools/find", views.tool_find, name="tool_find"),
    path("tools/<uuid:pk>", views.tool_detail, name="tool_detail"),
    path("tools/<uuid:pk>/<int:number>", views.tool_detail, name="tool_version"),
]
