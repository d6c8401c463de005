"""Definitions as served: {% served_unapproved tool.name as served %}, {{ text|pieces:"del" }}."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audit.queries.definitions import ServedTool, ToolFilter, served_tools
from audit.show.text import exact
from tools_registry.served import Piece

register = template.Library()
_SERVERS_SHOWN = 10


@register.simple_tag
def served_unapproved(tool_name: str) -> list[ServedTool]:
    """A tool's definitions in force that are unapproved or unknown, by server. One statement."""
    wanted = ToolFilter(tool=tool_name, only_unapproved=True)
    return served_tools(wanted, size=_SERVERS_SHOWN).tools


@register.filter
def pieces(text: Iterable[Piece], element: str) -> SafeString:
    """A text with its changed parts in elements of this name, `del` or `ins`."""
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<{0}>{1}</{0}>", element, exact(one.text)),)
            if one.is_changed
            else (exact(one.text),)
            for one in text
        ),
    )
