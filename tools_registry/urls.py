"""The pages of `tools_registry`."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
