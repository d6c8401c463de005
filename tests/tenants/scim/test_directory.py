"""What a directory's changes do to members: who is removed there is out here, and nowhere else."""

from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.urls import reverse

from tenants.identity.admission import Identity, RefusedError, admit
from tenants.members import add_member
from tenants.models import Action, IdentityProvider, Membership, Role, User, provider_key
from tenants.scope import tenant_scope
from tests.support.factories import PASSWORD, Cast, make_user
from tests.support.identity.directory import USER, Directory, make_directory
from tests.support.identity.hostile_provider import HostileProvider
from tests.support.identity.visits import last_refusal, members_by, sign_in_with

HOME = reverse("home")
OFF = {"op": "replace", "path": "active", "value": False}


def verbs(row: IdentityProvider) -> list[str]:
    with tenant_scope(row.tenant_id):
        actions = Action.objects.filter(tenant_id=row.tenant_id, user_name__startswith="API key")
        return [one.verb for one in actions.order_by("at", "id")]


def connect(user: User, row: IdentityProvider, subject: str) -> None:
    key = provider_key(row.tenant_id, row.pk)
    SocialAccount.objects.create(user=user, provider=key, uid=subject)


def test_groups_decide_who_is_a_member_and_with_which_role(directory: Directory) -> None:
    row = directory.row
    ada = directory.add_user("ada")
    assert members_by(row) == {}, "no group has a role for her yet"
    staff = directory.add_group("staff", ada)
    name = f"ada@{row.tenant.slug}"
    assert members_by(row) == {name: "viewer"}
    platform = directory.add_group("platform")
    add = {"op": "add", "path": "members", "value": [{"value": ada}]}
    assert directory.patch(f"Groups/{platform}", add).status_code == 200
    assert members_by(row) == {name: "editor"}
    remove = {"op": "remove", "path": f'members[value eq "{ada}"]'}
    assert directory.patch(f"Groups/{platform}", remove).status_code == 200
    assert members_by(row) == {name: "viewer"}
    rename = {"op": "replace", "path": "displayName", "value": "owners"}
    assert directory.patch(f"Groups/{staff}", rename).status_code == 200
    assert members_by(row) == {name: "admin"}
    assert directory.send("DELETE", f"Groups/{staff}").status_code == 204
    assert members_by(row) == {}
    assert verbs(row) == [
        "directory-user.create",
        "directory-group.create",
        "member.accept",
        "directory-group.create",
        "directory-group.change",
        "member.role",
        "directory-group.change",
        "member.role",
        "directory-group.change",
        "member.role",
        "directory-group.delete",
        "member.remove",
    ]
    with tenant_scope(row.tenant_id):
        joined = Action.objects.filter(tenant_id=row.tenant_id, details__joined=["ada"])
        assert joined.count() == 2


@pytest.fixture
def signed_in_there(acme: Cast, provider: HostileProvider) -> tuple[Directory, Client, str]:
    """Ada, whom the directory made a viewer, in a session of the provider."""
    directory = make_directory(acme, issuer=provider.issuer)
    ada = directory.add_user("ada")
    directory.add_group("staff", ada)
    client = Client()
    assert sign_in_with(client, directory.row, provider)["Location"] == HOME
    assert client.get(HOME).status_code == 200
    return directory, client, ada


@pytest.mark.slow
@pytest.mark.parametrize("how", ["deactivated", "deleted", "replaced", "other identity"])
def test_who_is_removed_there_is_out_at_once(
    how: str,
    signed_in_there: tuple[Directory, Client, str],
    provider: HostileProvider,
) -> None:
    directory, client, ada = signed_in_there
    body: dict[str, Any] = {"schemas": [USER], "userName": "ada"}
    match how:
        case "deactivated":
            answer = directory.patch(f"Users/{ada}", OFF)
        case "deleted":
            answer = directory.send("DELETE", f"Users/{ada}")
        case "replaced":
            body |= {"externalId": "ada", "active": False}
            answer = directory.send("PUT", f"Users/{ada}", body)
        case _:
            answer = directory.send("PUT", f"Users/{ada}", body | {"externalId": "eve"})
    assert answer.status_code in (200, 204)
    assert client.get(HOME)["Location"].startswith(reverse("account_login"))
    again = Client()
    answer = sign_in_with(again, directory.row, provider)
    assert answer["Location"] == reverse("tenant_sign_in", args=[directory.row.tenant.slug])
    assert "gives you no role" in last_refusal(directory.row)
    assert f"ada@{directory.row.tenant.slug}" not in members_by(directory.row)


def test_who_comes_back_has_the_same_account(
    signed_in_there: tuple[Directory, Client, str], provider: HostileProvider
) -> None:
    directory, _, ada = signed_in_there
    accounts = set(SocialAccount.objects.filter(uid="ada").values_list("user_id", flat=True))
    directory.patch(f"Users/{ada}", OFF)
    directory.patch(f"Users/{ada}", {**OFF, "value": "True"})  # as Entra ID writes it
    assert list(members_by(directory.row).values()) == ["viewer"]
    assert sign_in_with(Client(), directory.row, provider)["Location"] == HOME
    assert accounts == set(
        SocialAccount.objects.filter(uid="ada").values_list("user_id", flat=True)
    )


def test_groups_of_claims_count_no_more(
    signed_in_there: tuple[Directory, Client, str], provider: HostileProvider
) -> None:
    directory, _, _ = signed_in_there
    provider.claims = {"groups": ["owners"]}
    assert sign_in_with(Client(), directory.row, provider)["Location"] == HOME
    assert list(members_by(directory.row).values()) == ["viewer"]
    provider.claims = {"sub": "eve", "groups": ["owners"]}
    assert sign_in_with(Client(), directory.row, provider)["Location"] != HOME


@pytest.mark.slow
def test_person_is_known_by_another_claim_if_the_provider_says_so(
    acme: Cast, provider: HostileProvider
) -> None:
    directory = make_directory(acme, issuer=provider.issuer, subject_claim="oid")
    directory.add_group("staff", directory.add_user("ada", externalId="object-1"))
    provider.claims = {"oid": "object-1", "sub": "pairwise"}
    assert sign_in_with(Client(), directory.row, provider)["Location"] == HOME
    for wrong in ("", 7, None, "x" * 192, "another", ["object-1"]):
        provider.claims = {"oid": wrong, "sub": "object-1"}
        assert sign_in_with(Client(), directory.row, provider)["Location"] != HOME


def test_nothing_of_another_tenant_changes(acme: Cast, globex: Cast, directory: Directory) -> None:
    """A person with an own account, connected to the provider, and a member of two tenants."""
    row, client = directory.row, Client()
    person = make_user("person")
    for cast in (acme, globex):
        with tenant_scope(cast.tenant.pk):
            add_member(cast.tenant, person, Role.EDITOR)
    connect(person, row, "person")
    before = User.objects.filter(pk=person.pk).values().get()
    assert client.login(username=person.username, password=PASSWORD)
    there = directory.add_user("person", displayName="Another name")
    directory.add_group("owners", there)
    with tenant_scope(acme.tenant.pk):
        member = Membership.objects.get(tenant=acme.tenant, user=person)
    assert member.role == "editor", "who was invited keeps the role that an admin gave"

    assert directory.patch(f"Users/{there}", OFF).status_code == 200
    with tenant_scope(acme.tenant.pk):
        assert not Membership.objects.filter(tenant=acme.tenant, user=person).exists()
    with tenant_scope(globex.tenant.pk):
        assert Membership.objects.get(tenant=globex.tenant, user=person).role == "editor"
    after = User.objects.filter(pk=person.pk).values().get()
    assert {**after, "last_login": None} == {**before, "last_login": None}
    assert SocialAccount.objects.filter(user=person).exists()
    assert client.get(HOME).status_code == 200, "the own session goes on, in the other tenant"
    assert globex.tenant.name in client.get(HOME).content.decode()

    directory.patch(f"Users/{there}", {**OFF, "value": True})
    with tenant_scope(acme.tenant.pk):
        assert not Membership.objects.filter(tenant=acme.tenant, user=person).exists(), (
            "an account that somebody had before is only invited"
        )


def test_same_name_elsewhere_is_another_person(
    acme: Cast, globex: Cast, directory: Directory
) -> None:
    taken = User.objects.create_user(f"ada@{directory.row.tenant.slug}", email="ada@acme.example")
    directory.add_group("staff", directory.add_user("ada", userName=acme.admin.username))
    other = make_directory(globex)
    other.add_group("owners", other.add_user("ada"))
    with tenant_scope(acme.tenant.pk):
        assert Membership.objects.get(tenant=acme.tenant, user=acme.admin).role == "admin"
        assert not Membership.objects.filter(tenant=acme.tenant, user=taken).exists()
    assert list(members_by(directory.row).values()) == ["viewer"]
    assert list(members_by(other.row).values()) == ["admin"]
    assert not set(members_by(directory.row)) & set(members_by(other.row))


def test_last_admin_stays_and_does_not_get_in(acme: Cast, provider: HostileProvider) -> None:
    directory = make_directory(acme, issuer=provider.issuer)
    ada = directory.add_user("ada")
    owners = directory.add_group("owners", ada)
    with tenant_scope(acme.tenant.pk):
        Membership.objects.filter(tenant=acme.tenant, user=acme.admin).delete()
    client = Client()
    assert sign_in_with(client, directory.row, provider)["Location"] == HOME
    assert directory.send("DELETE", f"Groups/{owners}").status_code == 204
    assert directory.send("DELETE", f"Users/{ada}").status_code == 204
    assert list(members_by(directory.row).values()) == ["admin"]
    assert client.get(HOME).status_code == 302
    assert sign_in_with(Client(), directory.row, provider)["Location"] != HOME


def test_without_an_external_id_nobody_becomes_a_member(directory: Directory) -> None:
    ada = directory.add_user("ada", externalId=None)
    directory.add_group("staff", ada)
    assert members_by(directory.row) == {}
    known = {"op": "add", "path": "externalId", "value": "ada"}
    assert directory.patch(f"Users/{ada}", known).status_code == 200
    assert list(members_by(directory.row).values()) == ["viewer"]


def test_default_role_is_for_whom_the_directory_lists(acme: Cast) -> None:
    directory = make_directory(acme, default_role=Role.VIEWER)
    directory.add_user("ada")
    assert list(members_by(directory.row).values()) == ["viewer"]
    key = provider_key(acme.tenant.pk, directory.row.pk)
    claims: dict[str, Any] = {"groups": ["owners"]}
    with pytest.raises(RefusedError):
        admit(directory.row, Identity(key, "eve", claims), None)
