"""How many spans were skipped: {% load skipped %} {% skipped_so_far as skipped %}."""

from django import template

from audit.queries.skipped_spans import SkippedTotals, skipped_totals

register = template.Library()


@register.simple_tag
def skipped_so_far() -> SkippedTotals:
    """The totals. One statement, inside the tenant's scope."""
    return skipped_totals()
