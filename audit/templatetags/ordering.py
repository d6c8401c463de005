"""Heads and values of columns: {% load ordering %} {% sort_head order "calls" "Calls" "r" %}."""

from typing import Any, cast

from django import template
from django.http import QueryDict
from django.template import Context
from django.utils.html import conditional_escape as escape
from django.utils.safestring import SafeString, mark_safe

from audit.queries.listed_call import ListedCall
from config.http.ordering import Order

register = template.Library()

_PLACES = ("before", "after", "live")
"""Members of an address that name a place in the rows, which another order does not have."""


_MEMBERS = {"run": "run_id"}
"""Members of a call whose names differ from those of their columns."""


@register.filter
def beside_query(params: QueryDict) -> list[tuple[str, str]]:
    """The members of an address that stay if its query `q` changes: not a place in the rows."""
    dropped = {"q", "plain", *_PLACES}
    return [(name, str(value)) for name, value in params.items() if name not in dropped]


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
    is_text = "is-text" in classes.split()
    is_current = order.column == column
    turned = "-" if is_current and not order.is_reversed else ""
    address = f"{order.page}{_address(context, order.parameter)}{order.parameter}={turned}{column}"
    is_ascending = is_text != (is_current and order.is_reversed)
    way = "ascending" if is_ascending else "descending"
    beside = f' <span class="unit-of">{escape(note)}</span>' if note else f" {zone}"
    attributes = "".join(
        (
            f' class="{escape(classes)}"' if classes else "",
            f' title="{escape(title)}"' if title else "",
            f' aria-sort="{way}"' if is_current else "",
        )
    )
    return mark_safe(  # noqa: S308  # texts are escaped, and a zone is markup
        f'<th scope="col"{attributes}><a{_id(context, f"{order.parameter}-{column}")}'
        f' href="{address}" hx-get="{address}">{escape(label)}</a>'
        f"{beside}</th>"
    )


def _id(context: Context, name: str) -> str:
    """The id by which htmx finds the focus again. Several tables with one order have one."""
    ids: set[str] = vars(context["request"]).setdefault("sort_ids", set())
    if name in ids:
        return ""
    ids.add(name)
    return f' id="{name}"'


@register.simple_tag
def sorts(name: str) -> SafeString:
    """Attributes of the part of a page that a head in it loads again: its id, and how.

    Of a page that is a part itself, with targets of its own, they are not needed.
    """
    return mark_safe(  # noqa: S308  # a word of ours
        f'id="{name}" hx-target:inherited="#{name}" hx-select:inherited="#{name}"'
        ' hx-swap:inherited="outerMorph" hx-push-url:inherited="true"'
    )


def _address(context: Context, parameter: str) -> str:
    """The page's address without order and place, to which a head adds its own; made once."""
    made: dict[str, str] = cast(Any, context.render_context).setdefault("sort_heads", {})
    if parameter not in made:
        query = context["request"].GET.copy()
        for name in (*_PLACES, parameter):
            query.pop(name, None)
        made[parameter] = escape(f"?{query.urlencode()}&" if query else "?")
    return made[parameter]
