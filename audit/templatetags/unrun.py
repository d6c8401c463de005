"""A tool's calls that did not run: {% load unrun %} {% asked_for tool.name as asked %}."""

from datetime import timedelta

from django import template
from django.utils import timezone

from audit.queries.tools import WITHIN
from audit.queries.unrun import Unrun, unrun_calls
from audit.queries.violations import calls_of_tool

register = template.Library()


@register.simple_tag
def asked_for(tool_name: str) -> Unrun:
    """The calls of a tool that were asked for in the last 24 hours. Two statements."""
    now = timezone.now()
    start, end = now - WITHIN, now + timedelta(days=2)
    started = {tool_name: calls_of_tool(tool_name, start, end)}
    return unrun_calls(start, end, started, tool=tool_name).total
