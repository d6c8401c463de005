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
    new_installation,
    until,
)
from tests.support.installation_requests import post_events, status_code


@pytest.fixture
def installation() -> Iterator[Installation]:
    with new_installation() as created:
        yield created


def test_server_drains_on_sigterm_before_closing(installation: Installation) -> None:
    """A load balancer sees 503 and goes elsewhere; until then nobody is refused."""
    process = installation.up("--json", "--dev-tenant", "acme", TOOLTRAIL_DRAIN_S="8")
    facts = announcement(process)
    assert status_code(facts["url"] + "/readyz") == HTTPStatus.OK
    process.send_signal(signal.SIGTERM)
    sent_at = time.monotonic()
    until(lambda: status_code(facts["url"] + "/readyz") == HTTPStatus.SERVICE_UNAVAILABLE)
    for _ in range(10):
        assert post_events(facts, make_call()) == HTTPStatus.OK
        assert status_code(facts["url"] + "/healthz") == HTTPStatus.OK
        assert status_code(facts["url"] + "/readyz") == HTTPStatus.SERVICE_UNAVAILABLE
    process.send_signal(signal.SIGTERM)  # a service manager's second one changes nothing
    assert process.wait(60) == 0
    assert time.monotonic() - sent_at >= 8
    assert installation.processes() == []
    assert not (installation.var / "draining").exists()


def test_sigint_skips_the_drain(installation: Installation) -> None:
    installation.var.mkdir(mode=0o711)
    (installation.var / "draining").touch()  # left behind by one that was killed
    process = installation.up("--json", "--dev-tenant", "acme", TOOLTRAIL_DRAIN_S="600")
    assert status_code(announcement(process)["url"] + "/readyz") == HTTPStatus.OK
    process.send_signal(signal.SIGTERM)
    until((installation.var / "draining").exists)
    assert end(process, signal.SIGINT) == 0
    assert installation.processes() == []
