"""The keys page: creating a key, showing its text once, revoking it."""

import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tenants.keys import KeyRefused, authenticate, create_key
from tenants.models import Action, ApiKey, Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast


@pytest.fixture
def client(acme: Cast) -> Client:
    client = Client()
    client.force_login(acme.admin)
    return client


def test_text_of_a_new_key_is_shown_once_and_works(acme: Cast, client: Client) -> None:
    answer = client.post(reverse("key_list"), {"name": "crawler", "scopes": ["ingest", "read"]})
    shown = re.search(r"tt_[0-9a-f]{32}_\w+", answer.content.decode())
    assert shown is not None
    assert authenticate(shown[0], Scope.INGEST).tenant_id == acme.tenant.id
    assert "no-store" in answer["Cache-Control"]
    again = client.get(reverse("key_list")).content.decode()
    assert "crawler" in again
    assert shown[0].split("_")[3] not in again


def test_key_expires_at_the_end_of_its_last_day(acme: Cast, client: Client) -> None:
    day = timezone.now().date() + timedelta(days=1)
    client.post(
        reverse("key_list"), {"name": "brief", "scopes": ["read"], "expires_on": day.isoformat()}
    )
    with tenant_scope(acme.tenant.id):
        ends = ApiKey.objects.get(name="brief").expires_at
    assert ends == datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\x00b"},
        {"scopes": []},
        {"scopes": ["root"]},
        {"expires_on": "2020-01-01"},
        {"expires_on": "soon"},
    ],
)
def test_invalid_form_creates_no_key_and_shows_errors(
    acme: Cast, client: Client, wrong: dict[str, object]
) -> None:
    answer = client.post(reverse("key_list"), {"name": "k", "scopes": ["read"], **wrong})
    assert answer.status_code == 200
    assert answer.context["form"].errors
    with tenant_scope(acme.tenant.id):
        assert not ApiKey.objects.exists()


def test_revoked_key_is_rejected(acme: Cast, client: Client) -> None:
    key, text = create_key(acme.tenant, "old", [Scope.READ])
    answer = client.post(reverse("key_revoke", args=[key.pk]), follow=True)
    assert "Key old revoked" in answer.content.decode()
    with pytest.raises(KeyRefused, match="revoked"):
        authenticate(text, Scope.READ)


def test_rotated_key_is_shown_once_and_the_old_one_keeps_working(
    acme: Cast, client: Client
) -> None:
    old, text = create_key(acme.tenant, "crawler", [Scope.READ])
    answer = client.post(reverse("key_rotate", args=[old.pk]), {"overlap": "24h"})
    page = answer.content.decode()
    shown = re.search(r"tt_[0-9a-f]{32}_\w+", page)
    assert shown is not None
    assert shown[0] != text
    assert "works until" in page
    assert f'replaced by <span class="mono">{shown[0].split("_")[2]}' in page
    for each in (text, shown[0]):
        assert authenticate(each, Scope.READ).tenant_id == acme.tenant.id
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(verb="key.rotate")
    assert action.subject == str(old)
    assert datetime.fromisoformat(action.details["works_until"]) > timezone.now()
    again = client.post(reverse("key_rotate", args=[old.pk]), {"overlap": "24h"}, follow=True)
    assert "was already replaced" in again.content.decode()


def test_rotation_without_overlap_expires_the_old_key(acme: Cast, client: Client) -> None:
    old, text = create_key(acme.tenant, "leaked", [Scope.READ])
    client.post(reverse("key_rotate", args=[old.pk]), {"overlap": "0"})
    with pytest.raises(KeyRefused, match="expired"):
        authenticate(text, Scope.READ)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"overlap": "never"}, {"overlap": "1h", "expires_on": "2020-01-01"}, {"overlap": "\0"}],
)
def test_invalid_rotation_creates_no_key(acme: Cast, client: Client, wrong: dict[str, str]) -> None:
    old, _ = create_key(acme.tenant, "k", [Scope.READ])
    answer = client.post(reverse("key_rotate", args=[old.pk]), wrong, follow=True)
    assert "is-error" in answer.content.decode()
    with tenant_scope(acme.tenant.id):
        assert ApiKey.objects.count() == 1


def test_key_changes_by_an_admin_are_logged(acme: Cast, client: Client) -> None:
    client.post(reverse("key_list"), {"name": "crawler", "scopes": ["ingest"]})
    with tenant_scope(acme.tenant.id):
        key = ApiKey.objects.get()
    client.post(reverse("key_revoke", args=[key.pk]))
    with tenant_scope(acme.tenant.id):
        actions = list(Action.objects.order_by("at").values_list("verb", "user_name", "subject"))
    name = acme.admin.username
    assert actions == [("key.create", name, str(key)), ("key.revoke", name, str(key))]


@pytest.mark.parametrize("role", ["viewer", "editor", "auditor"])
def test_only_admins_see_and_revoke_keys(acme: Cast, role: str) -> None:
    key, text = create_key(acme.tenant, "k", [Scope.READ])
    client = Client()
    client.force_login(getattr(acme, role))
    assert client.get(reverse("key_list")).status_code == 403
    assert client.post(reverse("key_revoke", args=[key.pk])).status_code == 403
    authenticate(text, Scope.READ)


def test_key_of_another_tenant_is_not_found(acme: Cast, globex: Cast, client: Client) -> None:
    key, text = create_key(globex.tenant, "theirs", [Scope.READ])
    assert "theirs" not in client.get(reverse("key_list")).content.decode()
    assert client.post(reverse("key_revoke", args=[key.pk])).status_code == 404
    assert client.post(reverse("key_revoke", args=[uuid.uuid4()])).status_code == 404
    assert client.get(reverse("key_revoke", args=[key.pk])).status_code == 405
    authenticate(text, Scope.READ)


def test_hostile_key_name_is_escaped(acme: Cast, client: Client) -> None:
    create_key(acme.tenant, "<script>alert(1)</script>", [Scope.READ])
    page = client.get(reverse("key_list")).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
