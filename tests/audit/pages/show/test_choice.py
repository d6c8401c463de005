"""A filter of a page's own choices with a value that is none of them."""

import pytest

from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool

ADDRESSES = [
    ("/calls/open", "kind", "overdue"),
    ("/skipped/", "reason", "unmarked"),
    ("/definitions/", "state", "unapproved"),
    ("/violations/", "side", "arguments"),
    ("/violations/export.csv", "side", "results"),
    ("/approvals/", "self", "1"),
    ("/approvals/export.csv", "self", "1"),
    ("/tools/TOOL/effect", "version", "1"),
    ("/tools/TOOL/effect", "range", "7d"),
    ("/tools/TOOL/effect", "calls", "all"),
]


@pytest.mark.parametrize(("address", "name", "valid"), ADDRESSES)
def test_value_that_is_no_choice_is_not_found(
    acme: Cast, address: str, name: str, valid: str
) -> None:
    send_events(acme.tenant, make_call())
    client = signed_in(acme.viewer)
    address = address.replace("TOOL", str(register_tool(acme).pk))
    for value, status in ((valid, 200), ("", 200), ("nonsense", 404)):
        assert client.get(address, {name: value}).status_code == status, value
