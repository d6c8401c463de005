"""Text of agents in templates: {% load free_text %} {{ call.tool_name|visible }}."""

from django import template

from audit.show.text import exact, plain, visible

register = template.Library()
register.filter("visible", visible)
register.filter("plain", plain)
register.filter("exact", exact)
