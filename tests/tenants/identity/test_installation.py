"""Providers of the installation: whom they sign in, which tenants open, and what is on record."""

import io
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.urls import reverse

from audit.declared.exporting import export_installation
from config.http.origin import own_url
from tenants.identity.installation import installation_providers
from tenants.identity.providers import secret_of
from tenants.invitations import invite
from tenants.members import add_member
from tenants.models import (
    Action,
    InstallationProvider,
    Membership,
    Role,
    Tenant,
    User,
    provider_key,
)
from tenants.scope import tenant_scope
from tests.support.declared import write_config
from tests.support.factories import PASSWORD, Cast, make_user
from tests.support.identity.hostile_provider import CLIENT, HostileProvider
from tests.support.identity.saml_provider import SamlProvider, provider_metadata
from tests.support.identity.visits import come_back, come_back_by_saml, leave, sign_in_with
from tests.support.pages import signed_in
from tests.support.second_factor import add_app, totp
from tests.support.snippets import snippet

HOME = reverse("home")
SECRET = "swordfish"


@pytest.fixture(autouse=True)
def _no_providers_remain() -> Iterator[None]:
    """Other tests share the installation. The application may not delete a provider."""
    yield
    with connections["owner"].cursor() as cursor:
        cursor.execute("DELETE FROM installation_provider")


class Operator:
    """Applies files that say only what belongs to the installation."""

    def __init__(self, folder: Path, provider: HostileProvider) -> None:
        self.file = folder / "installation.json"
        self.issuer = provider.issuer
        number = secrets.token_hex(4)
        self.name, self.suffix = f"ID {number}", f"@id-{number}"

    def apply(self, *options: str, **members: Any) -> InstallationProvider:
        """Define the provider with these members, and return it."""
        one = {"name": self.name, "issuer": self.issuer, "client_id": CLIENT, **members}
        self.write([one])
        call_command("apply", str(self.file), *options)
        return installation_providers()[0]

    def write(self, providers: list[dict[str, Any]]) -> None:
        """Write the file."""
        document = {"version": 1, "installation": {"identity_providers": providers}, "tenants": []}
        self.file.write_text(json.dumps(document))


@pytest.fixture
def operator(tmp_path: Path, provider: HostileProvider) -> Operator:
    (tmp_path / "secret").write_text(SECRET)
    return Operator(tmp_path, provider)


def roles(**groups: tuple[Cast, str]) -> list[dict[str, str]]:
    """Group = tenant and role, as the file has it."""
    return [
        {"group": group, "tenant": cast.tenant.slug, "role": role}
        for group, (cast, role) in groups.items()
    ]


def role_in(cast: Cast, name: str) -> str | None:
    with tenant_scope(cast.tenant.pk):
        members = Membership.objects.filter(tenant=cast.tenant, user__username=name)
        return members.values_list("role", flat=True).first()


def acts(cast: Cast, *verbs: str) -> list[Action]:
    with tenant_scope(cast.tenant.pk):
        found = Action.objects.filter(tenant=cast.tenant, verb__in=verbs)
        return list(found.order_by("at", "id"))


def opened(client: Client, cast: Cast) -> bool:
    """Whether the session gets into the tenant."""
    client.post(reverse("tenant_switch"), {"tenant": str(cast.tenant.pk)})
    answer: Any = client.get(HOME)
    return bool(answer.status_code == 200 and answer.wsgi_request.tenant == cast.tenant)


@pytest.mark.slow
def test_groups_lead_to_tenants_and_are_read_again_at_each_sign_in(
    acme: Cast, globex: Cast, operator: Operator, provider: HostileProvider
) -> None:
    row = operator.apply(
        roles=roles(staff=(acme, "viewer"), owners=(acme, "admin"), ops=(globex, "editor"))
    )
    assert (
        f"Sign in with {operator.name}" in Client().get(reverse("account_login")).content.decode()
    )
    name = f"ada{operator.suffix}"
    first = Client()
    provider.claims = {"groups": ["staff", "ops"]}
    assert sign_in_with(first, row, provider)["Location"] == HOME
    assert (role_in(acme, name), role_in(globex, name)) == ("viewer", "editor")
    assert opened(first, acme)
    assert opened(first, globex)
    user = User.objects.get(username=name)
    assert not user.has_usable_password()
    assert (user.email, user.is_staff) == ("", True)

    # Another tenant's group is gone, and one role is another.
    provider.claims = {"groups": ["owners", "staff"]}
    second = Client()
    assert sign_in_with(second, row, provider)["Location"] == HOME
    assert (role_in(acme, name), role_in(globex, name)) == ("admin", None)
    assert opened(second, acme)
    assert not opened(second, globex)
    assert not opened(first, globex)
    assert [one.verb for one in acts(globex, "member.accept", "member.remove")] == [
        "member.accept",
        "member.remove",
    ]
    # Nobody is found by a name: another person of this name is another account.
    provider.claims = {"groups": ["staff"], "sub": "another"}
    sign_in_with(Client(), row, provider)
    assert role_in(acme, f"ada.2{operator.suffix}") == "viewer"


@pytest.mark.slow
def test_last_admin_stays_and_does_not_get_in(
    acme: Cast, operator: Operator, provider: HostileProvider
) -> None:
    row = operator.apply(roles=roles(staff=(acme, "viewer"), owners=(acme, "admin")))
    provider.claims = {"groups": ["owners"]}
    before = Client()
    sign_in_with(before, row, provider)
    with tenant_scope(acme.tenant.pk):
        Membership.objects.filter(tenant=acme.tenant, user=acme.admin).delete()
    for groups in (["staff"], []):
        provider.claims = {"groups": groups}
        client = Client()
        sign_in_with(client, row, provider)
        assert role_in(acme, f"ada{operator.suffix}") == "admin"
        assert not opened(client, acme)
    assert not opened(before, acme)


@pytest.mark.slow
def test_stranger_gets_no_account_without_a_group_or_an_invitation(
    acme: Cast, operator: Operator, provider: HostileProvider
) -> None:
    row = operator.apply(roles=roles(owners=(acme, "admin")))
    client = Client()
    answer = sign_in_with(client, row, provider)
    assert answer["Location"] == reverse("account_login")
    assert "open the link of the invitation" in client.get(answer["Location"]).content.decode()
    assert not User.objects.filter(username__endswith=operator.suffix).exists()
    assert SocialAccount.objects.filter(provider=provider_key(None, row.pk)).count() == 0

    with tenant_scope(acme.tenant.pk):
        _, token = invite(acme.tenant, "Ada", Role.EDITOR, created_by=acme.admin)
    link = reverse("invitation_accept", args=[token])
    page = client.get(link).content.decode()
    assert f"Continue with {operator.name}" in page
    for wrong in (link[:-2] + "xx", "/invitations/nothing", "/nowhere", "/calls/"):
        came = come_back(client, row, provider.authorize(leave(client, row, next=wrong)))
        assert came["Location"] == reverse("account_login"), wrong
    came = come_back(client, row, provider.authorize(leave(client, row, next=link)))
    assert came["Location"] == link
    assert f"Join as ada{operator.suffix}" in client.get(link).content.decode()
    assert client.post(link)["Location"] == HOME
    assert opened(client, acme)
    # The membership is the person's: the groups, which give none, do not take it.
    again = Client()
    sign_in_with(again, row, provider)
    assert opened(again, acme)
    assert role_in(acme, f"ada{operator.suffix}") == "editor"


@pytest.mark.slow
def test_account_of_before_connects_and_keeps_password_memberships_and_factor(
    acme: Cast, globex: Cast, operator: Operator, provider: HostileProvider
) -> None:
    row = operator.apply(roles=roles(staff=(globex, "viewer")))
    client = signed_in(acme.viewer)
    start = reverse("provider_connect", args=[row.pk])
    assert client.post(start)["Location"].startswith(reverse("account_reauthenticate"))
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    brought = provider.authorize(client.post(start).context["address"])
    assert come_back(client, row, brought)["Location"] == reverse("mfa_index")
    assert [one.details["provider"] for one in acts(acme, "identity.connect")] == [operator.name]
    secret = add_app(client)

    by_provider = Client()
    answer = sign_in_with(by_provider, row, provider)
    assert answer["Location"].startswith(reverse("mfa_authenticate")), "the factor is asked for"
    by_provider.post(reverse("mfa_authenticate"), {"code": totp(secret, 1)})
    assert opened(by_provider, acme), "the invitation's membership"
    assert opened(by_provider, globex), "the group's membership"
    by_password = Client()
    by_password.force_login(acme.viewer)
    assert opened(by_password, acme)
    assert not opened(by_password, globex), "only the provider's sessions open what it made"
    assert by_provider.get(reverse("mfa_index")).status_code == 200

    gone = reverse("provider_disconnect", args=[row.pk])
    assert by_provider.post(gone).status_code == 404
    assert client.post(gone).status_code == 302
    assert not opened(by_provider, acme), "its sessions are ended"
    assert [one.details["provider"] for one in acts(acme, "identity.disconnect")] == [operator.name]


@pytest.mark.slow
def test_confirmation_at_the_installations_provider(
    acme: Cast, operator: Operator, provider: HostileProvider
) -> None:
    row = operator.apply(roles=roles(staff=(acme, "admin")))
    client = Client()
    sign_in_with(client, row, provider)
    page = reverse("provider_confirm")
    for fresh in (False, True):
        shown = client.post(page, {"next": "/calls/"})
        provider.claims = {"auth_time": int(time.time()) - (0 if fresh else 3_600)}
        back = come_back(client, row, provider.authorize(shown.context["address"]))
        assert (back["Location"] == HOME) is not fresh
    assert [one.details["provider"] for one in acts(acme, "session.confirm")] == [operator.name]


@pytest.mark.slow
def test_tenants_provider_still_opens_only_its_tenant(
    acme: Cast, globex: Cast, operator: Operator, provider: HostileProvider, row: Any
) -> None:
    """The same person at both providers is two accounts; neither opens what the other made."""
    general = operator.apply(roles=roles(staff=(globex, "admin")))
    own, wide = Client(), Client()
    assert sign_in_with(own, row, provider)["Location"] == HOME
    assert sign_in_with(wide, general, provider)["Location"] == HOME
    assert opened(own, acme)
    assert not opened(own, globex)
    assert opened(wide, globex)
    assert not opened(wide, acme)
    assert own.get(reverse("mfa_index")).status_code == 403


@pytest.mark.slow
def test_operators_acts_are_on_record_in_each_tenant_with_its_own_roles(
    acme: Cast, globex: Cast, operator: Operator
) -> None:
    first = roles(staff=(acme, "viewer"), owners=(globex, "admin"))
    row = operator.apply(roles=first, secret={"file": "secret"})
    assert secret_of(row) == SECRET
    operator.apply(roles=first)
    operator.apply(roles=roles(staff=(acme, "editor"), owners=(globex, "admin")))
    operator.apply(roles=[], is_disabled=True)
    operator.write([])
    call_command("apply", str(operator.file))
    verbs = [f"installation-provider.{verb}" for verb in ("create", "change", "disable")]
    done = acts(acme, *verbs)
    assert [one.verb.partition(".")[2] for one in done] == ["create", "change", "change", "disable"]
    assert done[0].details["after"]["roles"] == [{"group": "staff", "role": "viewer"}]
    assert done[1].details["after"]["roles"] == [{"group": "staff", "role": "editor"}]
    others = json.dumps([one.details for one in done])
    assert "owners" not in others
    assert globex.tenant.slug not in others
    assert str(globex.tenant.pk) not in others
    assert SECRET not in others
    assert done[0].user_name.startswith("operator")
    elsewhere = acts(globex, *verbs)
    assert elsewhere[0].details["after"]["roles"] == [{"group": "owners", "role": "admin"}]
    assert elsewhere[1].details["after"] == {}


@pytest.mark.slow
def test_disabled_provider_signs_nobody_in_and_its_sessions_end(
    acme: Cast, operator: Operator, provider: HostileProvider
) -> None:
    named = roles(staff=(acme, "viewer"))
    row = operator.apply(roles=named)
    client = Client()
    sign_in_with(client, row, provider)
    assert opened(client, acme)
    operator.apply(roles=named, is_disabled=True)
    assert not opened(client, acme)
    assert operator.name not in Client().get(reverse("account_login")).content.decode()
    start = reverse("provider_start", args=[row.pk])
    assert Client().post(start).status_code == 404
    operator.write([])
    operator.apply(roles=named)
    operator.write([])
    call_command("apply", str(operator.file), "--prune")
    assert installation_providers()[0].disabled_at is not None


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        (
            {"issuer": "no url"},
            "installation.identity_providers[0].issuer: The URL contains a character",
        ),
        ({"secret": {"file": "none"}}, "identity_providers[0].secret: the file none does not"),
        (
            {"roles": [{"group": "x", "tenant": "nowhere", "role": "viewer"}]},
            "identity_providers[0].roles[0].tenant: there is no tenant 'nowhere'",
        ),
        ({"kind": "saml"}, "identity_providers[0].client_id: A SAML provider has none"),
        ({"scim": True}, "identity_providers[0].scim: Extra inputs"),
    ],
)
def test_problem_of_a_file_is_named_and_nothing_is_stored(
    operator: Operator, members: dict[str, Any], problem: str
) -> None:
    with pytest.raises(CommandError) as error:
        operator.apply(**members)
    assert problem in str(error.value)
    assert installation_providers() == []


@pytest.mark.slow
def test_dry_run_stores_and_records_nothing_and_export_is_applied_without_a_change(
    acme: Cast, operator: Operator, tmp_path: Path
) -> None:
    named = roles(staff=(acme, "viewer"))
    operator.write([{"name": "X", "issuer": operator.issuer, "client_id": CLIENT, "roles": named}])
    call_command("apply", str(operator.file), "--dry-run")
    assert installation_providers() == []
    row = operator.apply(roles=named, secret={"file": "secret"}, asks_second_factor=True)
    before = len(acts(acme, "installation-provider.create"))
    exported = tmp_path / "exported.json"
    part = export_installation()  # the whole export has the tenants of other tests, too
    [provider] = part["identity_providers"]
    assert provider["roles"] == named
    exported.write_text(json.dumps({"version": 1, "installation": part, "tenants": []}))
    assert SECRET not in exported.read_text()
    call_command("apply", str(exported))
    assert len(acts(acme, "installation-provider.create")) == before == 1
    assert acts(acme, "installation-provider.change") == []
    row.refresh_from_db()
    assert secret_of(row) == SECRET


@pytest.mark.slow
def test_result_as_json_has_the_installation_beside_the_tenants(
    acme: Cast, operator: Operator, tmp_path: Path
) -> None:
    def applied(*options: object) -> dict[str, Any]:
        out = io.StringIO()
        call_command("apply", *map(str, options), "--json", stdout=out, stderr=io.StringIO())
        document: dict[str, Any] = json.loads(out.getvalue())
        return document

    one = {"name": operator.name, "issuer": operator.issuer, "client_id": CLIENT}
    operator.write([one | {"roles": roles(staff=(acme, "viewer"))}])
    tenants = write_config(tmp_path, {"slug": acme.tenant.slug, "polling_tools": ["status"]})
    both = applied(operator.file, tenants)
    assert [each["tenant"] for each in both["tenants"]] == [acme.tenant.slug]
    assert both["installation"].keys() == both["tenants"][0].keys() - {"tenant"}
    [change] = both["installation"]["changes"]
    assert (change["action"], change["name"]) == ("create", operator.name)
    assert applied(operator.file) == {
        "is_dry_run": False,
        "tenants": [],
        "installation": {"changes": [], "notes": [], "problems": [], "invitations": {}},
    }
    assert applied(tenants)["installation"] is None


@pytest.mark.slow
def test_documented_file_is_applied(acme: Cast, tmp_path: Path) -> None:
    text = snippet("docs/sign-in.md", "yaml").replace("tenant: acme", f"tenant: {acme.tenant.slug}")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "identity").write_text(SECRET)
    file = tmp_path / "installation.yaml"
    file.write_text(text)
    noted = io.StringIO()
    call_command("apply", str(file), stderr=noted)
    [row] = installation_providers()
    assert (row.name, len(row.roles), secret_of(row)) == ("Example ID", 2, SECRET)
    assert f"redirect URI {own_url()}/sign-in/with/{row.pk}/callback" in noted.getvalue()


@pytest.mark.slow
def test_saml_provider_of_the_installation(acme: Cast, operator: Operator) -> None:
    honest = SamlProvider()
    operator.write(
        [
            {
                "name": "Example SAML",
                "kind": "saml",
                "metadata": provider_metadata(honest.keys),
                "roles": roles(staff=(acme, "viewer")),
            }
        ]
    )
    noted = io.StringIO()
    call_command("apply", str(operator.file), stderr=noted)
    row = installation_providers()[0]
    for end in ("metadata", "acs"):
        assert f" {own_url()}/sign-in/with/{row.pk}/{end}" in noted.getvalue()
    assert Client().get(reverse("provider_metadata", args=[row.pk])).status_code == 200
    client = Client()
    answer = come_back_by_saml(client, row, honest.answer(leave(client, row)))
    assert answer["Location"] == HOME
    assert opened(client, acme)
    # An unsigned one is refused, and nobody is told more than that.
    other = Client()
    unsigned = SamlProvider(signs=())
    answer = come_back_by_saml(other, row, unsigned.answer(leave(other, row)))
    assert answer["Location"] == reverse("account_login")


@pytest.mark.slow
def test_tenant_with_sso_only_opens_to_whom_the_groups_lead_there(
    acme: Cast, operator: Operator, provider: HostileProvider
) -> None:
    row = operator.apply(roles=roles(staff=(acme, "viewer")))
    form = {"sso_only": "on", "break_glass": acme.admin.username}
    signed_in(acme.admin).post(reverse("sso_only_settings"), form)
    assert Tenant.objects.get(pk=acme.tenant.pk).sso_only
    client = Client()
    sign_in_with(client, row, provider)
    assert opened(client, acme)
    # Who was only invited, and whom no group leads there, has lost the company's word.
    invited = make_user("invited")
    with tenant_scope(acme.tenant.pk):
        add_member(acme.tenant, invited, Role.VIEWER)
    SocialAccount.objects.create(user=invited, provider=provider_key(None, row.pk), uid="eve")
    provider.claims = {"sub": "eve", "groups": []}
    other = Client()
    sign_in_with(other, row, provider)
    assert not opened(other, acme)
    provider.claims = {"sub": "eve", "groups": ["staff"]}
    sign_in_with(other, row, provider)
    assert opened(other, acme)


def by_password(user: User, **more: str) -> tuple[Client, Any]:
    client = Client()
    pair = {"username": user.username, "password": PASSWORD, **more}
    return client, client.post(reverse("account_login"), pair)


@pytest.mark.slow
def test_installation_without_passwords_but_one(
    acme: Cast,
    operator: Operator,
    provider: HostileProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = operator.apply(roles=roles(staff=(acme, "viewer")))
    before = signed_in(acme.editor)
    assert opened(before, acme)
    monkeypatch.setattr(settings, "BREAK_GLASS", acme.admin.username)
    page = Client().get(reverse("account_login")).content.decode()
    assert 'type="password"' not in page
    assert 'type="password"' in Client().get(f"{reverse('account_login')}?password=1").text
    # The right password is answered as a wrong one.
    _, right = by_password(acme.editor)
    _, wrong = by_password(acme.editor, password="wrong")
    assert right.context["form"].errors == wrong.context["form"].errors
    assert before.get(HOME)["Location"] == reverse("tenant_sign_in", args=[acme.tenant.slug])
    named, _ = by_password(acme.admin)
    for _ in range(2):
        assert opened(named, acme)
    assert [one.user_name for one in acts(acme, "session.break-glass")] == [acme.admin.username]
    client = Client()
    sign_in_with(client, row, provider)
    assert opened(client, acme)
    assert len(acts(acme, "session.break-glass")) == 1
    # Invitations make no account with a password.
    with tenant_scope(acme.tenant.pk):
        _, token = invite(acme.tenant, "Nina", Role.VIEWER, created_by=acme.admin)
    link = reverse("invitation_accept", args=[token])
    form = {"username": "nina", "password1": PASSWORD, "password2": PASSWORD}
    assert Client().post(link, form).status_code == 200
    assert not User.objects.filter(username=f"nina@{acme.tenant.slug}").exists()
