"""The pages of `audit`."""

from django.urls import path

from audit.views.home import home
from audit.views.trace_list import trace_list

urlpatterns = [
    path("", home, name="home"),
    path("traces/", trace_list, name="trace_list"),
]
