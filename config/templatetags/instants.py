"""Instants in templates: {% load instants %} {{ call.started_at|instant }}.

Each is a `<time>` in the user's time zone, with the instant in UTC for machines and on hover.
"""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from config import instants

register = template.Library()


@register.filter
def instant(at: datetime) -> SafeString:
    """Format an instant in full: `2026-11-20 14:02:11.204 UTC+1`."""
    return _time(at, instants.exact(at, timezone.get_current_timezone()))


@register.filter
def short_instant(at: datetime) -> SafeString:
    """Format an instant in short: `14:02:11.204`, `20 Nov 14:02:11`, `2025-11-20 14:02`."""
    return _time(at, instants.short(at, timezone.now(), timezone.get_current_timezone()))


@register.filter
def minute(at: datetime) -> SafeString:
    """Format an instant to the minute, for pages without seconds: `2026-11-20 14:02`."""
    return _time(at, instants.to_the_minute(at, timezone.get_current_timezone()))


@register.filter
def instant_text(at: datetime) -> str:
    """Format an instant in full without an element, for attributes."""
    return instants.exact(at, timezone.get_current_timezone())


@register.simple_tag
def zone() -> SafeString:
    """Name the time zone of a column's times: `UTC`, `Kathmandu`."""
    name = timezone.get_current_timezone_name()
    if name == "UTC":
        return mark_safe('<span class="unit-of">UTC</span>')
    return format_html(
        '<span class="unit-of" title="Times in {}. Hover over a time for UTC.">{}</span>',
        name,
        instants.place(name),
    )


def _time(at: datetime, text: str) -> SafeString:
    utc = instants.iso(at)  # as `instants.exact` in UTC, too, which takes as long again
    return mark_safe(  # noqa: S308  # only digits and our own words
        f'<time datetime="{utc}" title="{utc[:10]} {utc[11:-1]} UTC">{text}</time>'
    )
