"""Identity providers in files of configuration."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tenants.identity.admission import Identity, admit
from tenants.identity.providers import all_providers, secret_of
from tenants.models import IdentityProvider, Membership, Tenant, provider_key
from tenants.scope import tenant_scope
from tests.support.declared import changes_of, export, write_config
from tests.support.factories import Cast

PROVIDER: dict[str, Any] = {
    "name": "Acme ID",
    "issuer": "https://id.acme.example",
    "client_id": "tooltrail",
    "secret": {"file": "secret"},
    "role_by_group": {"staff": "viewer"},
}


def apply(cast: Cast, folder: Path, *arguments: str, **sections: Any) -> list[str]:
    """What a file with these sections changes."""
    file = write_config(folder, {"slug": cast.tenant.slug, **sections})
    return changes_of(file, *arguments)


def problems(cast: Cast, folder: Path, **sections: Any) -> str:
    """The problems of a file with these sections."""
    file = write_config(folder, {"slug": cast.tenant.slug, **sections})
    with pytest.raises(CommandError) as error:
        call_command("apply", str(file))
    return str(error.value)


def stored(tenant: Tenant) -> list[IdentityProvider]:
    with tenant_scope(tenant.pk):
        return all_providers(tenant)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the client's secret."""
    (tmp_path / "secret").write_text("first\n")
    return tmp_path


def test_provider_changes_with_its_file(acme: Cast, folder: Path) -> None:
    assert apply(acme, folder, identity_providers=[PROVIDER]) == [
        "create identity provider Acme ID"
    ]
    assert apply(acme, folder, identity_providers=[PROVIDER]) == []
    (folder / "secret").write_text("second")
    assert apply(acme, folder, identity_providers=[PROVIDER]) == [
        "change identity provider Acme ID"
    ]
    other = {**PROVIDER, "role_by_group": {"staff": "editor"}, "scim": True}
    del other["secret"]
    assert apply(acme, folder, identity_providers=[other]) == ["change identity provider Acme ID"]
    [provider] = stored(acme.tenant)
    assert (provider.role_by_group, secret_of(provider)) == ({"staff": "editor"}, "second")
    assert provider.settings["scim"] is True
    [exported] = export(acme.tenant.slug)["identity_providers"]
    assert exported["scim"] is True
    assert exported["secret"].keys() == {"file"}


def test_prune_disables_a_provider_and_leaves_its_members(acme: Cast, folder: Path) -> None:
    apply(acme, folder, identity_providers=[PROVIDER])
    [row] = stored(acme.tenant)
    with tenant_scope(acme.tenant.pk):
        row = IdentityProvider.objects.select_related("tenant").get(pk=row.pk, tenant=acme.tenant)
    key = provider_key(acme.tenant.pk, row.pk)
    user = admit(row, Identity(key, "ada", {"groups": ["staff"]}), None)
    exported = export(acme.tenant.slug)
    assert user.username not in {one["user"] for one in exported["members"]}
    members = {"members": exported["members"]}
    assert apply(acme, folder, "--prune", **members) == []
    with tenant_scope(acme.tenant.pk):
        assert Membership.objects.filter(tenant=acme.tenant, user=user).exists()
    disabled = ["change identity provider Acme ID"]
    assert apply(acme, folder, "--prune", identity_providers=[]) == disabled
    assert apply(acme, folder, "--prune", identity_providers=[]) == []
    assert apply(acme, folder, identity_providers=[PROVIDER]) == disabled
    assert [one.disabled_at for one in stored(acme.tenant)] == [None]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"issuer": "no url"}, "identity_providers[0].issuer: The URL contains a character"),
        ({"secret": {"file": "missing"}}, "identity_providers[0].secret"),
        ({"name": "x" * 41}, "identity_providers[0].name"),
        ({"role_by_group": {"staff": "owner"}}, "role_by_group"),
        ({"role_by_group": {"": "viewer"}}, "identity_providers[0].role_by_group"),
        ({"kind": "ldap"}, "kind"),
        ({"kind": "saml"}, "identity_providers[0].client_id: A SAML provider has none"),
        ({"sso_url": "https://id.acme.example"}, "identity_providers[0].sso_url: Only a SAML"),
        ({"mcp": "write"}, "mcp"),
        ({"mcp_audience": "tooltrail"}, "mcp_audience: This is the client ID of the sign-in"),
    ],
    ids=str,
)
def test_wrong_provider_is_a_problem_and_nothing_is_stored(
    changed: dict[str, Any], problem: str, acme: Cast, folder: Path
) -> None:
    assert problem in problems(acme, folder, identity_providers=[{**PROVIDER, **changed}])
    assert stored(acme.tenant) == []


def test_file_lets_mcp_clients_in(acme: Cast, folder: Path) -> None:
    apply(acme, folder, identity_providers=[PROVIDER])
    given = {**PROVIDER, "mcp": "payloads", "mcp_person_claim": "uid"}
    changed = ["change identity provider Acme ID"]
    assert apply(acme, folder, identity_providers=[given]) == changed
    assert apply(acme, folder, identity_providers=[given]) == []
    [exported] = export(acme.tenant.slug)["identity_providers"]
    assert (exported["mcp"], exported["mcp_person_claim"]) == ("payloads", "uid")
    assert "mcp_audience" not in exported
    assert apply(acme, folder, identity_providers=[PROVIDER]) == changed
    assert "mcp" not in stored(acme.tenant)[0].settings


def test_what_names_people_cannot_change(acme: Cast, folder: Path) -> None:
    apply(acme, folder, identity_providers=[PROVIDER])
    for name, value in (("issuer", "https://other.example"), ("subject_claim", "oid")):
        changed = {**PROVIDER, name: value}
        told = problems(acme, folder, identity_providers=[changed])
        assert f"identity_providers[0].{name}: " in told
        assert "cannot change" in told


def test_sso_only_needs_a_provider_and_an_admin(acme: Cast, folder: Path) -> None:
    on = {"is_on": True, "break_glass": acme.admin.username}
    assert "sso_only.is_on: Add a provider" in problems(acme, folder, sso_only=on)
    nobody = {"is_on": True}
    told = problems(acme, folder, identity_providers=[PROVIDER], sso_only=nobody)
    assert "sso_only.break_glass: Name an admin" in told
    made = ["create identity provider Acme ID", "change sso only"]
    assert apply(acme, folder, identity_providers=[PROVIDER], sso_only=on) == made
    assert export(acme.tenant.slug)["sso_only"] == on
    assert apply(acme, folder, sso_only={"is_on": False}) == ["change sso only"]
