"""The pages of `audit`."""

from django.urls import path, register_converter

from audit.converters import DayConverter, FreeTextConverter
from audit.views.call_detail import call_detail, call_event
from audit.views.home import home
from audit.views.trace_detail import trace_detail
from audit.views.trace_list import trace_list

register_converter(DayConverter, "day")
register_converter(FreeTextConverter, "text")

urlpatterns = [
    path("", home, name="home"),
    # /traces
    path("traces/", trace_list, name="trace_list"),
    path("traces/<text:trace_id>", trace_detail, name="trace_detail"),
    # /calls
    path("calls/<day:started_on>/<uuid:invocation_id>", call_detail, name="call_detail"),
    path("calls/<day:started_on>/<uuid:invocation_id>/<slug:kind>", call_event, name="call_event"),
]
