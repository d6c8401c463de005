"""Addresses of calls and traces, equal to those of `reverse()` but faster to build.

A page has a hundred of them, and `reverse()` takes as long as the rest of a row. The routes are in
`audit.pages.urls`.
"""

from datetime import date
from functools import cache
from typing import Protocol
from urllib.parse import quote, quote_plus
from uuid import UUID

from django.urls import get_script_prefix, reverse
from django.utils.http import RFC3986_SUBDELIMS

from audit.queries.call_query import quoted
from audit.show.converters import FreeTextConverter

_to_segment = FreeTextConverter().to_url


class Place(Protocol):
    """An object that identifies a call and its trace."""

    @property
    def started_on(self) -> date: ...
    @property
    def invocation_id(self) -> UUID: ...
    @property
    def trace_id(self) -> str: ...


def call_address(call: Place) -> str:
    """The address of the call's own page."""
    return f"{_folder(get_script_prefix(), 'call_list')}{call.started_on}/{call.invocation_id}"


def trace_address(trace_id: str) -> str:
    """The address of the trace's timeline."""
    segment = quote(_to_segment(trace_id), safe=f"{RFC3986_SUBDELIMS}/~:@")
    return _folder(get_script_prefix(), "trace_list") + segment


def address_in_trace(call: Place) -> str:
    """The address of the timeline with the call opened in it."""
    return f"{trace_address(call.trace_id)}?call={call.invocation_id}#c-{call.invocation_id}"


def incident_address(query: str) -> str:
    """The address of the form of a new incident of a query's calls."""
    return f"{_folder(get_script_prefix(), 'incident_list')}?q={quote_plus(query)}"


def trace_incident_address(trace_id: str) -> str:
    """The same, of the calls of a trace."""
    return incident_address(f"trace:{quoted(trace_id)}")


@cache
def _folder(prefix: str, route: str) -> str:
    assert prefix  # part of what reverse() returns, so part of the key
    return reverse(route)
