"""The checks of scim2-tester against a running server."""

from typing import Any

import pytest
from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server

from tests.support.identity.directory import Directory
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow


def test_scim_tester_finds_nothing(directory: Directory, live_server: LiveServer) -> None:
    with Client(
        base_url=f"{live_server.url}/scim/v2/{directory.row.pk}",
        headers={"Authorization": f"Bearer {directory.key}"},
    ) as http:
        results: list[Any] = check_server(SyncSCIMClient(http))
    found = {str(one.status.name) for one in results}
    wrong = [
        f"{one.title} ({one.resource_type}): {one.reason}"
        for one in results
        if one.status.name not in ("SUCCESS", "COMPLIANT", "SKIPPED", "ACCEPTABLE")
    ]
    assert not wrong, "\n".join(wrong)
    assert len(results) > 40, found
