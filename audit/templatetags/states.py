"""A state by shape, colour and word: {% load states %} {{ call.tone|shape }} {% mark "ok" "ok" %}.

States are failed, violation, open, waiting, working, cancelled and ok; of calls that did not run:
refused, awaiting, approved.
These are functions, not templates, as a list has a hundred of them.
"""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_PATHS = {
    "failed": "M1.7.3 5 3.6 8.3.3l1.4 1.4L6.4 5l3.3 3.3-1.4 1.4L5 6.4 1.7 9.7.3 8.3 3.6 5 .3 1.7z",
    "violation": "M5 0 10 5 5 10 0 5z",
    "open": "M1.5.4 9.6 5 1.5 9.6zM3 3v4l3.6-2z",
    "waiting": "M2 .5h2v9H2zM6 .5h2v9H6z",
    "working": "M.4 1.2 4.8 5 .4 8.8zM5.2 1.2 9.6 5 5.2 8.8z",
    "cancelled": "M1 1h8v8H1zM3 3v4h4V3z",
    "refused": "M5 .3a4.7 4.7 0 1 1 0 9.4A4.7 4.7 0 0 1 5 .3zM2.4 4v2h5.2V4z",
    "awaiting": "M1 .5h8v1.4L6.2 5 9 8.1v1.4H1V8.1L3.8 5 1 1.9z",
    "approved": "M5 .8a4 4 0 1 1 0 8.4 4 4 0 0 1 0-8.4zm0 1.6a2 2 0 1 0 0 5.2 2 2 0 0 0 0-5.2z",
}
_SHAPES = {
    state: mark_safe(  # noqa: S308  # the paths above
        f'<svg viewBox="0 0 10 10" aria-hidden="true"><path d="{path}" fill-rule="evenodd"/></svg>'
    )
    for state, path in _PATHS.items()
}
_CIRCLE = mark_safe(
    '<svg viewBox="0 0 10 10" aria-hidden="true"><circle cx="5" cy="5" r="4.2"/></svg>'
)


@register.filter
def shape(state: str) -> SafeString:
    """The shape of a state, 10 × 10."""
    return _SHAPES.get(state, _CIRCLE)


@register.simple_tag
def mark(state: str, text: str, word: str = "") -> SafeString:
    """A state in its filled form. `word` names what a bare number counts (read out, on hover)."""
    if not word:
        return format_html(
            '<span class="state is-{0} mark">{1}{2}</span>', state, shape(state), text
        )
    return format_html(
        '<span class="state is-{0} mark" title="{2} {3}">{1}{2}'
        '<span class="sr-only"> {3}</span></span>',
        state,
        shape(state),
        text,
        word,
    )
