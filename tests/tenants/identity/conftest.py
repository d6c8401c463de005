"""An identity provider on loopback, and the row of a tenant that uses it.

Django is set up after this module is imported, so models are imported in the fixtures.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.identity.hostile_provider import CLIENT, HostileProvider, opened_provider

if TYPE_CHECKING:
    from tenants.models import IdentityProvider
    from tests.support.factories import Cast


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileProvider]:
    """A provider that does what the test says, at an address that the operator opened."""
    with opened_provider(monkeypatch) as one:
        yield one


@pytest.fixture
def row(acme: "Cast", provider: HostileProvider) -> "IdentityProvider":
    """Acme's provider: staff are viewers, the platform group are editors, others nothing."""
    from tenants.identity.providers import add_provider
    from tenants.identity.wanted import Wanted
    from tenants.models import Role
    from tenants.scope import tenant_scope

    wanted = Wanted(
        name="Acme ID",
        issuer=provider.issuer,
        client_id=CLIENT,
        secret="the client's",
        role_by_group={"staff": Role.VIEWER, "platform": Role.EDITOR},
    )
    with tenant_scope(acme.tenant.id):
        return add_provider(acme.tenant, acme.admin, wanted)
