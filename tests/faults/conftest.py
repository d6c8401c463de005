"""What the faults need: the option `--full`, a proxy, and places where executors run."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.proxy import Proxy

if TYPE_CHECKING:  # this is loaded before Django is set up
    from tests.support.factories import Cast
    from tests.support.faults.site import Site
    from tests.support.server import LiveServer


@pytest.fixture
def full(pytestconfig: pytest.Config) -> bool:
    """Whether `--full` was given."""
    return bool(pytestconfig.getoption("full"))


@pytest.fixture
def proxy(live_server: "LiveServer") -> Iterator[Proxy]:
    """A proxy between executors and server. It changes nothing until a test asks it to."""
    proxy = Proxy(live_server.url)
    yield proxy
    proxy.close()


@pytest.fixture
def site(acme: "Cast", live_server: "LiveServer", tmp_path: Path) -> "Iterator[Site]":
    """acme's executors, connected directly to the server."""
    from tests.support.faults.site import site_of

    with site_of(acme.tenant, live_server.url, tmp_path / "acme", tmp_path / "spool") as site:
        yield site


@pytest.fixture
def far_site(acme: "Cast", proxy: Proxy, tmp_path: Path) -> "Iterator[Site]":
    """acme's executors, with `proxy` between them and the server."""
    from tests.support.faults.site import site_of

    with site_of(acme.tenant, proxy.url, tmp_path / "acme", tmp_path / "spool") as site:
        yield site
