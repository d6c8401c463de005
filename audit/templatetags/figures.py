"""`audit.show.figures` for templates: {% load figures %} {{ call.duration_us|duration }}."""

from django import template

from audit.queries.price_lists import plain
from audit.show import figures

register = template.Library()
for _function in (
    figures.duration,
    figures.count,
    figures.counted,
    figures.milliseconds,
    figures.short_version,
    figures.short_count,
    figures.byte_size,
    figures.share,
    figures.money,
):
    register.filter(_function.__name__, _function)
register.filter("exact", plain)
