"""Addresses built fast equal those of `reverse()`, and resolve to the same view."""

import uuid
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest
from django.urls import resolve, reverse, set_script_prefix

from audit.show.addresses import (
    Place,
    address_in_trace,
    call_address,
    trace_address,
)

TRACES = [
    "trace-123",
    "a/b",
    "..",
    ".",
    "%2F",
    "a b?c#d&e'f\"<g>",
    "ü\u202e",
    ":@!$,;=()*~_",
    "x" * 128,
]


def place(trace_id: str) -> Place:
    namespace = SimpleNamespace(
        started_on=datetime(2026, 1, 2, tzinfo=UTC).date(),
        invocation_id=uuid.uuid4(),
        trace_id=trace_id,
    )
    return cast(Place, namespace)


@pytest.mark.parametrize("prefix", ["/", "/tools/"])
@pytest.mark.parametrize("trace_id", TRACES)
def test_urls_match_the_routes(trace_id: str, prefix: str) -> None:
    one = place(trace_id)
    set_script_prefix(prefix)
    try:
        trace = reverse("trace_detail", args=[trace_id])
        assert trace_address(trace_id) == trace
        assert address_in_trace(one) == f"{trace}?call={one.invocation_id}#c-{one.invocation_id}"
        assert call_address(one) == reverse("call_detail", args=[one.started_on, one.invocation_id])
    finally:
        set_script_prefix("/")


def test_call_url_resolves_to_the_call() -> None:
    one = place("t")
    match = resolve(call_address(one))
    assert match.kwargs == {"started_on": one.started_on, "invocation_id": one.invocation_id}
