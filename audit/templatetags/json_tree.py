"""`audit.show.json_tree` for templates: {% load json_tree %}{{ document|json_tree }}."""

import json
from typing import Any

from django import template
from django.utils.safestring import SafeString

from audit.events.json_values import parse
from audit.show.json_tree import draw

register = template.Library()

# A published schema is shown whole; its size is limited where it is published.
_MAX_LINES = 20_000


@register.filter(name="json_tree")
def json_tree(document: Any) -> SafeString:
    """A JSON document as highlighted lines. Raises ValueError or TypeError if it is not JSON."""
    return draw(parse(json.dumps(document).encode()), max_lines=_MAX_LINES).html
