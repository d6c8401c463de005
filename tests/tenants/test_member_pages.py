"""The members page: removing members, roles, and the last admin. See test_invitations.py."""

import threading

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from tenants.members import LastAdminError, remove_member
from tenants.models import Action, Membership, Role, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast


@pytest.fixture
def client(acme: Cast) -> Client:
    client = Client()
    client.force_login(acme.admin)
    return client


def _member(cast: Cast, user: User) -> Membership | None:
    with tenant_scope(cast.tenant.id):
        return Membership.objects.filter(tenant=cast.tenant, user=user).first()


def _existing(cast: Cast, user: User) -> Membership:
    member = _member(cast, user)
    assert member is not None
    return member


def test_role_is_changed_to_a_valid_role_only(acme: Cast, client: Client) -> None:
    member = _existing(acme, acme.viewer)
    client.post(reverse("member_role", args=[member.pk]), {"role": "auditor"})
    assert _existing(acme, acme.viewer).role == "auditor"
    client.post(reverse("member_role", args=[member.pk]), {"role": "emperor"})
    assert _existing(acme, acme.viewer).role == "auditor"


def test_member_is_removed_and_the_account_is_kept(acme: Cast, client: Client) -> None:
    member = _existing(acme, acme.viewer)
    client.post(reverse("member_remove", args=[member.pk]))
    assert _member(acme, acme.viewer) is None
    assert User.objects.filter(pk=acme.viewer.pk).exists()


@pytest.mark.slow
def test_last_admin_can_neither_leave_nor_change_role(acme: Cast, client: Client) -> None:
    member = _existing(acme, acme.admin)
    for name, data in (("member_remove", {}), ("member_role", {"role": "viewer"})):
        answer = client.post(reverse(name, args=[member.pk]), data, follow=True)
        assert "is the last admin" in answer.content.decode()
    assert _existing(acme, acme.admin).role == "admin"


def test_two_admins_removing_each_other_leave_one(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        Membership.objects.filter(user=acme.editor).update(role=Role.ADMIN)
    members = [_existing(acme, acme.admin), _existing(acme, acme.editor)]
    both_started = threading.Barrier(2)
    refused: list[Membership] = []

    def remove(member: Membership) -> None:
        try:
            with tenant_scope(acme.tenant.id):
                both_started.wait(10)
                remove_member(member)
        except LastAdminError:
            refused.append(member)
        finally:
            connection.close()

    threads = [threading.Thread(target=remove, args=[member]) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(refused) == 1
    with tenant_scope(acme.tenant.id):
        assert Membership.objects.filter(role=Role.ADMIN).count() == 1


@pytest.mark.slow
def test_member_changes_by_an_admin_are_logged(acme: Cast, client: Client) -> None:
    member = _existing(acme, acme.viewer)
    client.post(reverse("member_role", args=[member.pk]), {"role": "editor"})
    client.post(reverse("member_remove", args=[member.pk]))
    client.post(reverse("member_list"), {"label": "Nina", "role": "viewer"})
    with tenant_scope(acme.tenant.id):
        actions = list(Action.objects.order_by("at").values_list("verb", "subject"))
    name = acme.viewer.username
    assert actions == [("member.role", name), ("member.remove", name), ("member.invite", "Nina")]


def test_member_of_another_tenant_is_not_found(acme: Cast, globex: Cast, client: Client) -> None:
    member = _existing(globex, globex.viewer)
    for name in ("member_role", "member_remove"):
        answer = client.post(reverse(name, args=[member.pk]), {"role": "admin"})
        assert answer.status_code == 404
    assert globex.viewer.username not in client.get(reverse("member_list")).content.decode()
    assert _existing(globex, globex.viewer).role == "viewer"


def test_list_shows_only_the_membership_in_this_tenant(
    acme: Cast, globex: Cast, client: Client
) -> None:
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.admin, role=Role.VIEWER)
    page = client.get(reverse("member_list"))
    assert {member.tenant_id for member in page.context["members"].rows} == {acme.tenant.id}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["viewer", "editor", "auditor"])
def test_only_admins_manage_members(acme: Cast, role: str) -> None:
    member = _existing(acme, acme.viewer)
    client = Client()
    client.force_login(getattr(acme, role))
    assert client.get(reverse("member_list")).status_code == 403
    for name in ("member_role", "member_remove"):
        answer = client.post(reverse(name, args=[member.pk]), {"role": "admin"})
        assert answer.status_code == 403
    assert _existing(acme, acme.viewer).role == "viewer"
