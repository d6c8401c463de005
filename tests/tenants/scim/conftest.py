"""A tenant's provider with a directory, and the requests that the directory sends.

Django is set up after this module is imported, so models are imported in the fixtures.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.identity.directory import Directory
from tests.support.identity.hostile_provider import HostileProvider, opened_provider

if TYPE_CHECKING:
    from tests.support.factories import Cast


@pytest.fixture
def directory(acme: "Cast") -> Directory:
    """Acme's: the group staff are viewers, platform editors, owners admins; others nothing."""
    from tests.support.identity.directory import make_directory

    return make_directory(acme)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileProvider]:
    """A provider that does what the test says, at an address that the operator opened."""
    with opened_provider(monkeypatch) as one:
        yield one
