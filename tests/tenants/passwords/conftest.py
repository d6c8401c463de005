"""A provider of a tenant. Django is set up after this module is imported."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenants.models import IdentityProvider
    from tests.support.factories import Cast


@pytest.fixture
def row(acme: "Cast") -> "IdentityProvider":
    """Acme's: its staff are viewers. Nobody connects to it."""
    from tenants.identity.providers import add_provider
    from tenants.identity.wanted import Wanted
    from tenants.models import Role
    from tenants.scope import tenant_scope

    roles = {"staff": Role.VIEWER}
    wanted = Wanted("Acme ID", "https://id.acme.example", "tooltrail", role_by_group=roles)
    with tenant_scope(acme.tenant.pk):
        return add_provider(acme.tenant, acme.admin, wanted)
