"""`audit.show.addresses` for templates: {% load addresses %} {{ call|call_address }}."""

from django import template

from audit.show import addresses

register = template.Library()
for _function in (
    addresses.call_address,
    addresses.trace_address,
    addresses.address_in_trace,
    addresses.incident_address,
    addresses.trace_incident_address,
):
    register.filter(_function.__name__, _function)
