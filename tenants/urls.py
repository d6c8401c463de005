"""Sign-in, tenant switcher, keys and members."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
