"""Stopping behind a load balancer: the effect of `TOOLTRAIL_DRAIN_S` on a running server."""

import signal
import time
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from tests.support.factories import make_call
from tests.support.installation import (
    Installation,
    announcement,
    end,
    prepared_installation,
    until,
)
from tests.support.installation_requests import post_events, status_code

pytestmark = pytest.mark.slow


@pytest.fixture
def installation() -> Iterator[Installation]:
    with prepared_installation() as created:
        yield created


@pytest.mark.sampled("stopping or without a database", 1)
def test_server_serves_while_it_drains(installation: Installation) -> None:
    """A load balancer sees 503 and uses another server; until then no request is refused."""
    process = installation.up("--json", "--dev-tenant", "acme", TOOLTRAIL_DRAIN_S="600")
    facts = announcement(process)
    assert status_code(facts["url"] + "/readyz") == HTTPStatus.OK
    process.send_signal(signal.SIGTERM)
    until(lambda: status_code(facts["url"] + "/readyz") == HTTPStatus.SERVICE_UNAVAILABLE)
    process.send_signal(signal.SIGTERM)  # a second SIGTERM changes nothing
    for _ in range(10):
        assert post_events(facts, make_call()) == HTTPStatus.OK
        assert status_code(facts["url"] + "/healthz") == HTTPStatus.OK
        assert status_code(facts["url"] + "/readyz") == HTTPStatus.SERVICE_UNAVAILABLE
    assert end(process, signal.SIGINT) == 0, "SIGINT skips the drain"
    assert installation.processes() == []
    assert not (installation.var / "draining").exists()


@pytest.mark.sampled("stopping or without a database", 1)
def test_server_ends_after_the_drain(installation: Installation) -> None:
    (installation.var / "draining").touch()  # as a killed process leaves it
    process = installation.up("--json", TOOLTRAIL_DRAIN_S="3")
    assert status_code(announcement(process)["url"] + "/readyz") == HTTPStatus.OK
    sent_at = time.monotonic()
    process.send_signal(signal.SIGTERM)
    until((installation.var / "draining").exists)
    assert end(process, signal.SIGTERM) == 0  # a second time, which changes nothing
    assert time.monotonic() - sent_at >= 3
    assert installation.processes() == []
    assert not (installation.var / "draining").exists()
