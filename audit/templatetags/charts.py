"""Charts in templates: {% load charts %} <a href="{{ query|calls_address }}">."""

from django import template
from django.urls import reverse
from django.utils.http import urlencode

from audit.charts import sparkline

register = template.Library()
register.filter("sparkline", sparkline)


@register.filter
def calls_address(query: str) -> str:
    """The address of the calls a query asks for."""
    return f"{reverse('call_list')}?{urlencode({'q': query})}"
