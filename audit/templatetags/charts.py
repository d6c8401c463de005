"""Charts and their calls in templates: {% load charts %} <a href="{{ query|calls_address }}">."""

from collections.abc import Mapping
from functools import cache
from urllib.parse import quote_plus, urlencode

from django import template
from django.urls import get_script_prefix, reverse

from audit.call_query import quoted
from audit.charts import sparkline, value_text

register = template.Library()
register.filter("sparkline", sparkline)

_OF_THE_RANGE = ("range", "from", "to")


@register.filter
def calls_address(query: str) -> str:
    """The address of the calls a query asks for."""
    return f"{_folder(get_script_prefix(), 'call_list')}?q={quote_plus(query)}"


@register.filter
def tool_term(name: str, query: str) -> str:
    """A query narrowed down to a tool's calls."""
    return f"{query} tool:{quoted(name)}"


@register.filter
def ms(milliseconds: float | None) -> str:
    """A duration: `301 ms`; — for none."""
    return value_text(milliseconds, "duration")


@register.filter
def violation_address(kind: object, asked: Mapping[str, str]) -> str:
    """The violations of a kind's tool, path and code, in the range of an address."""
    found = {name: asked[name] for name in _OF_THE_RANGE if name in asked}
    for name, attribute in (("tool", "tool_name"), ("path", "path_pattern"), ("code", "code")):
        found[name] = getattr(kind, attribute)
    return f"{_folder(get_script_prefix(), 'violation_list')}?{urlencode(found)}"


@cache
def _folder(_prefix: str, name: str) -> str:
    """Where a list is; `reverse()` takes as long as all the rest of a link."""
    return reverse(name)
