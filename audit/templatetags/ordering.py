"""Heads and values of columns: {% load ordering %} {% sort_head order "calls" "Calls" "r" %}."""

from django import template
from django.http import HttpRequest
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit.pages.show.ordering import Order
from audit.queries.listed_call import ListedCall

register = template.Library()

_PLACES = ("before", "after", "live")
"""Members of an address that name a place in the rows, which another order does not have."""


_MEMBERS = {"run": "run_id"}
"""Members of a call whose names differ from those of their columns."""


@register.filter
def column_value(call: ListedCall, column: str) -> str | None:
    """What a call has in a column that is a text."""
    value: str | None = getattr(call, _MEMBERS.get(column, column))
    return value


@register.simple_tag(takes_context=True)
def sort_head(
    context: Context,
    order: Order,
    column: str,
    label: str,
    classes: str = "",
    title: str = "",
    note: str = "",
    zone: str = "",
) -> SafeString:
    """The head of a column: a link that sorts by it, or reverses the order that it has.

    `note` is beside the label; `zone` too, which is what the tag of that name makes. With the class
    `is-text`, the column begins with the first by the alphabet.
    """
    request: HttpRequest = context["request"]
    is_text = "is-text" in classes.split()
    is_current = order.column == column
    query = request.GET.copy()
    for name in _PLACES:
        query.pop(name, None)
    query[order.parameter] = f"-{column}" if is_current and not order.is_reversed else column
    address = f"?{query.urlencode()}"
    is_ascending = is_text != (is_current and order.is_reversed)
    return format_html(
        '<th scope="col"{}{}{}><a href="{}" hx-get="{}">{}</a>{}</th>',
        format_html(' class="{}"', classes) if classes else "",
        format_html(' title="{}"', title) if title else "",
        format_html(' aria-sort="{}"', "ascending" if is_ascending else "descending")
        if is_current
        else "",
        address,
        address,
        label,
        format_html(' <span class="unit-of">{}</span>', note) if note else format_html(" {}", zone),
    )
