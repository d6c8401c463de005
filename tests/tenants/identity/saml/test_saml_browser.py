"""Chromium signs in through SimpleSAMLphp: a new role and key, a confirmation, an end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tenants.identity.providers import add_provider, path_of
from tenants.identity.wanted import Wanted
from tenants.models import ProviderKind, Role
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.identity.browser import Entrance, company_signs_in, server_for
from tests.support.identity.saml_provider import keys
from tests.support.identity.simplesaml import SimpleSaml, simple_saml
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[SimpleSaml]:
    with simple_saml(tmp_path) as one:
        yield one


@pytest.fixture
def server(provider: SimpleSaml) -> Iterator[LiveServer]:
    with server_for(provider) as one:
        yield one


def submit_twice(page: Page) -> None:
    """Without scripts the two forms need a click each."""
    page.get_by_role("button", name="Submit").click()  # of the provider's page
    page.get_by_role("button", name="Continue").click()  # of ours


@pytest.mark.sampled("company in a browser", 1)
def test_company_signs_in_with_saml(
    browser: Browser, server: LiveServer, provider: SimpleSaml, acme: Cast
) -> None:
    wanted = Wanted(
        kind=ProviderKind.SAML,
        name="Acme ID",
        issuer=provider.entity_id,
        metadata_url=provider.entity_id,
        role_by_group={"staff": Role.VIEWER, "owners": Role.ADMIN},
    )
    with tenant_scope(acme.tenant.id):
        row = add_provider(acme.tenant, acme.admin, wanted)
    provider.service = f"{server.url}{path_of(row, 'provider_metadata')}"
    provider.service_address = f"{server.url}{path_of(row, 'provider_acs')}"
    slug, names = acme.tenant.slug, iter(("one", "two"))
    company_signs_in(
        browser,
        Entrance(server, f"/sign-in/{slug}", row.name, "loginuserpass", "username"),
        provider,
        row.tenant_id,
        f"ada@{slug}",
        new_key=lambda: provider.start(keys(next(names))),
        last_steps=submit_twice,
    )
