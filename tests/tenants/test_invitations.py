"""Invitations: links that work once, and only for a person who accepts."""

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tenants.invitations import KEPT_FOR, VALID_FOR, invite, read_token
from tenants.members import add_member
from tenants.models import Action, Invitation, Membership, Role, Tenant, User
from tenants.scope import tenant_scope
from tests.support.factories import PASSWORD, Cast, make_user

NEW = "a password of their own"


def _signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _invite(cast: Cast, role: str = "viewer") -> str:
    """The path of a link that the tenant's admin made on the page."""
    answer = _signed_in(cast.admin).post(reverse("member_list"), {"label": "Nina", "role": role})
    shown = re.search(r'value="http://testserver(/invitations/[^"]+)" readonly', answer.text)
    assert shown is not None
    return shown[1]


def _join(link: str, name: str, password: str = NEW, client: Client | None = None) -> Any:
    form = {"username": name, "password1": password, "password2": password}
    return (client or Client()).post(link, form)


def _role(tenant: Tenant, user: User) -> str | None:
    with tenant_scope(tenant.id):
        membership = Membership.objects.filter(tenant=tenant, user=user).first()
        return membership.role if membership else None


def _acts(tenant: Tenant) -> list[tuple[str, str]]:
    with tenant_scope(tenant.id):
        actions = Action.objects.filter(tenant=tenant, verb__startswith="member.").order_by("at")
        return list(actions.values_list("verb", "user_name"))


def test_new_person_joins_with_a_private_password(acme: Cast) -> None:
    link, client = _invite(acme, "editor"), Client()
    page = client.get(link)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert acme.admin.username in page.text
    answer = _join(link, "nina", client=client)
    assert (answer.status_code, answer["Location"]) == (302, reverse("home"))
    user = User.objects.get(username=f"nina@{acme.tenant.slug}")
    assert _role(acme.tenant, user) == "editor"
    assert user.is_staff, "an editor may open the admin site"
    assert client.get(reverse("trace_list")).status_code == 200, "signed in"
    assert Client().login(username=user.username, password=NEW)
    assert _acts(acme.tenant) == [
        ("member.invite", acme.admin.username),
        ("member.accept", user.username),
    ]
    with tenant_scope(acme.tenant.id):
        accepted = Action.objects.get(tenant=acme.tenant, verb="member.accept")
    assert accepted.details == {
        "role": "editor",
        "invitation": "Nina",
        "invited_by": acme.admin.username,
        "is_new_account": True,
    }


def test_existing_account_joins_by_invitation(acme: Cast, globex: Cast) -> None:
    link, client = _invite(globex, "auditor"), _signed_in(acme.viewer)
    assert f"Join as {acme.viewer.username}" in client.get(link).text
    assert client.post(link).status_code == 302
    assert _role(globex.tenant, acme.viewer) == "auditor"
    request: Any = client.get(reverse("home"), follow=True).wsgi_request
    assert request.tenant == globex.tenant
    assert _role(acme.tenant, acme.viewer) == "viewer", "the other membership stays"


def test_user_returns_to_the_link_after_signing_in(acme: Cast) -> None:
    link, user, client = _invite(acme), make_user("nina"), Client()
    assert f"/login?next={link}" in client.get(link).text
    pair = {"username": user.username, "password": PASSWORD, "next": link}
    assert client.post(reverse("account_login"), pair)["Location"] == link
    assert client.post(link).status_code == 302
    assert _role(acme.tenant, user) == "viewer"


def test_existing_account_is_not_added_by_name(acme: Cast) -> None:
    """An account of the name may be another tenant's admin's, who knows its password."""
    user = make_user("newhire")
    client = _signed_in(acme.admin)
    for form in (
        {"username": user.username, "role": "admin"},
        {"username": user.username, "role": "admin", "is_new": "on"},
        {"label": user.username, "role": "admin"},
    ):
        client.post(reverse("member_list"), form)
    assert _role(acme.tenant, user) is None
    assert _signed_in(user).get(reverse("member_list")).status_code == 403


@pytest.mark.slow
def test_usernames_of_other_tenants_are_not_disclosed(acme: Cast, globex: Cast) -> None:
    _join(_invite(globex), "nina")
    client = _signed_in(acme.admin)
    answers = [
        client.post(reverse("member_list"), {"label": label, "role": "viewer"})
        for label in ("nobody-at-all", globex.viewer.username, f"nina@{globex.tenant.slug}")
    ]
    assert [one.context["form"].errors for one in answers] == [{}, {}, {}]
    # Nor by way of a link: each name that is made there is the tenant's own.
    assert _join(_invite(acme), "nina").status_code == 302
    taken = _join(_invite(acme), "Nina")
    assert "already exists" in str(taken.context["form"].errors["username"])
    for name in (f"nina@{globex.tenant.slug}", "a@b", "", "x" * 81, "a b", "\x00"):
        assert _join(_invite(acme), name).context["form"].errors["username"]
    assert User.objects.filter(username__startswith="nina@").count() >= 2


@pytest.mark.parametrize("weak", ["k9-mPq2-xZ7", "918273645546372819", "1qaz2wsx3edc4rfv"])
def test_weak_password_is_rejected(acme: Cast, weak: str) -> None:
    link = _invite(acme)
    answer = _join(link, "nina", weak)
    assert answer.context["form"].errors["password2"]
    assert not User.objects.filter(username=f"nina@{acme.tenant.slug}").exists()
    assert _join(link, "nina").status_code == 302, "the link still opens"


def test_link_works_once(acme: Cast) -> None:
    link = _invite(acme)
    _join(link, "nina")
    for answer in (Client().get(link), _join(link, "nora"), _signed_in(make_user("x")).post(link)):
        assert answer.status_code == 410
        assert "already accepted" in answer.text
    with tenant_scope(acme.tenant.id):
        assert Membership.objects.filter(tenant=acme.tenant).count() == 5


def test_concurrent_acceptance_succeeds_once(acme: Cast) -> None:
    link, statuses = _invite(acme), []
    together = threading.Barrier(2)

    def join(user: User) -> None:
        client = _signed_in(user)
        together.wait(10)
        statuses.append(client.post(link).status_code)
        connection.close()

    threads = [threading.Thread(target=join, args=[make_user("both")]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(statuses) == [302, 410]


def test_link_expires(acme: Cast) -> None:
    link = _invite(acme)
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE invitation SET expires_at = %s WHERE tenant_id = %s",
            [timezone.now() - timedelta(seconds=1), acme.tenant.id],
        )
    answer = _join(link, "nina")
    assert answer.status_code == 410
    assert f"valid for {VALID_FOR.days} days" in answer.text


def test_revoked_link_does_not_work(acme: Cast) -> None:
    link, client = _invite(acme), _signed_in(acme.admin)
    (invitation,) = client.get(reverse("member_list")).context["invitations"].rows
    revoke = reverse("invitation_revoke", args=[invitation.pk])
    assert "revoked" in client.post(revoke, follow=True).text
    assert "is no longer open" in client.post(revoke, follow=True).text
    assert _join(link, "nina").status_code == 410
    assert client.get(reverse("member_list")).context["invitations"].rows == []
    assert [verb for verb, _ in _acts(acme.tenant)] == ["member.invite", "member.uninvite"]


def test_invitation_of_another_tenant_is_not_found(acme: Cast, globex: Cast) -> None:
    _invite(globex)
    with tenant_scope(globex.tenant.id):
        invitation = Invitation.objects.get(tenant=globex.tenant)
    client = _signed_in(acme.admin)
    assert client.post(reverse("invitation_revoke", args=[invitation.pk])).status_code == 404
    assert client.get(reverse("member_list")).context["invitations"].rows == []


@pytest.mark.parametrize("role", ["viewer", "editor", "auditor"])
def test_only_admins_can_invite(acme: Cast, role: str) -> None:
    client = _signed_in(getattr(acme, role))
    assert client.post(reverse("member_list"), {"label": "x", "role": "admin"}).status_code == 403


def test_altered_link_is_not_found(acme: Cast, globex: Cast) -> None:
    link = _invite(acme)
    secret = link[-43:]
    others = link.replace(acme.tenant.pk.hex, globex.tenant.pk.hex)
    for altered in (others, link[:-43] + secret[::-1], link[:-1], link + "A", "/invitations/x"):
        for client in (Client(), _signed_in(globex.admin)):
            assert client.get(altered).status_code == 404
            assert _join(altered, "nina", client=client).status_code == 404
    assert _join(link, "nina").status_code == 302


def test_only_a_digest_of_the_link_is_stored(acme: Cast) -> None:
    token = read_token(_invite(acme).rpartition("/")[2])
    assert token is not None
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT i::text, (SELECT string_agg(a::text, '') FROM action a WHERE a.tenant_id = %s)"
            " FROM invitation i WHERE i.tenant_id = %s",
            [acme.tenant.id, acme.tenant.id],
        )
        ((stored, acts),) = cursor.fetchall()
    assert "Nina" in stored
    assert "Nina" in acts
    assert token.secret not in stored + acts
    assert token.secret not in _signed_in(acme.admin).get(reverse("member_list")).text


def test_member_keeps_the_role_and_the_link_stays_valid(acme: Cast) -> None:
    link = _invite(acme, "admin")
    assert _signed_in(acme.viewer).post(link).status_code == 409
    assert _role(acme.tenant, acme.viewer) == "viewer"
    assert _join(link, "nina").status_code == 302


def test_link_of_a_suspended_tenant_does_not_work(acme: Cast) -> None:
    link = _invite(acme)
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at=timezone.now())
    assert _join(link, "nina").status_code == 410


def test_account_with_an_initial_password_joins_only_after_changing_the_password(
    acme: Cast,
) -> None:
    """Made before there were invitations: until its owner has changed the password."""
    user = acme.viewer
    User.objects.filter(pk=user.pk).update(has_initial_password=True)
    with tenant_scope(acme.tenant.id):
        Action.objects.create(
            tenant=acme.tenant,
            user_name="admin",
            verb="member.add",
            subject=user.username,
            details={"is_new_account": True},
        )
    other = Tenant.objects.create(slug=f"other-{user.pk}", name="Other")
    with tenant_scope(other.id):
        _, token = invite(other, "Nina", Role.ADMIN)
    client, link = Client(), reverse("invitation_accept", args=[token])
    client.login(username=user.username, password=PASSWORD)
    assert "knows its password" in client.post(link).text
    assert _role(other, user) is None
    changed = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert client.post(reverse("password_change"), changed).status_code == 302
    assert client.post(link).status_code == 302
    assert _role(other, user) == "admin"


def test_long_expired_invitations_are_deleted(acme: Cast) -> None:
    _invite(acme)
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE invitation SET expires_at = %s WHERE tenant_id = %s",
            [timezone.now() - KEPT_FOR - timedelta(minutes=1), acme.tenant.id],
        )
    _invite(acme)
    with tenant_scope(acme.tenant.id):
        assert Invitation.objects.filter(tenant=acme.tenant).count() == 1


@pytest.mark.parametrize("leaving", ["removed", "demoted"])
def test_invitation_by_a_former_admin_does_not_work(acme: Cast, leaving: str) -> None:
    client, former = _signed_in(acme.admin), make_user("former")
    with tenant_scope(acme.tenant.id):
        member = add_member(acme.tenant, former, Role.ADMIN)
        _, token = invite(acme.tenant, "me", Role.ADMIN, created_by=former)
    link = reverse("invitation_accept", args=[token])
    assert Client().get(link).status_code == 200
    if leaving == "removed":
        client.post(reverse("member_remove", args=[member.pk]))
    else:
        client.post(reverse("member_role", args=[member.pk]), {"role": "viewer"})
    for answer in (Client().get(link), _join(link, "me"), _signed_in(make_user("me")).post(link)):
        assert answer.status_code == 410
        assert "no longer an admin" in answer.text
    assert client.get(reverse("member_list")).context["invitations"].rows == []
