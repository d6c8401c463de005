"""A SAML provider of a tenant. Django is set up after this module is imported."""

from typing import TYPE_CHECKING

import pytest

from tests.support.identity.saml_provider import ENTITY_ID, SSO_URL, SamlProvider

if TYPE_CHECKING:
    from tenants.models import IdentityProvider
    from tests.support.factories import Cast


@pytest.fixture
def provider() -> SamlProvider:
    """A provider that does what the test says."""
    return SamlProvider()


@pytest.fixture
def row(acme: "Cast", provider: SamlProvider) -> "IdentityProvider":
    """Acme's provider: staff are viewers, the platform group are editors, others nothing."""
    from tenants.identity.providers import add_provider
    from tenants.identity.wanted import Wanted
    from tenants.models import ProviderKind, Role
    from tenants.scope import tenant_scope

    wanted = Wanted(
        kind=ProviderKind.SAML,
        name="Acme ID",
        issuer=ENTITY_ID,
        sso_url=SSO_URL,
        certificates=(provider.keys.certificate,),
        role_by_group={"staff": Role.VIEWER, "platform": Role.EDITOR},
    )
    with tenant_scope(acme.tenant.id):
        return add_provider(acme.tenant, acme.admin, wanted)
