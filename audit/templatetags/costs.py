"""What a tool's calls cost: {% load costs %} {% cost_of_tool tool.name as costs %}."""

from datetime import UTC

from django import template
from django.utils import timezone

from audit.queries.costs import costs_over_time
from audit.queries.time_range import TimeRange
from audit.queries.tools import WITHIN
from audit.show.costs import CostFact, cost_facts

register = template.Library()


@register.simple_tag
def cost_of_tool(tool_name: str) -> list[CostFact]:
    """What the calls of a tool cost in the last 24 hours; nothing without a call or a price list.

    At most two statements.
    """
    now = timezone.now()
    return cost_facts(costs_over_time(TimeRange(now - WITHIN, now, UTC), tool_name), None)
