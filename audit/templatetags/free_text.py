"""Text of agents in templates: {% load free_text %} {{ call.tool_name|visible }}."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from audit.show.text import exact, plain, visible

register = template.Library()
register.filter("visible", visible)
register.filter("plain", plain)
register.filter("exact", exact)


@register.filter
def by_underscores(text: str) -> SafeString:
    """A code that may break after its underscores, and nowhere else."""
    return mark_safe(visible(text).replace("_", "_<wbr>"))  # noqa: S308  # `visible` escapes
