"""Saved views of the list of calls: by name, for each user in each tenant."""

import re

import pytest

from audit.models import SavedView
from audit.queries.saved_views import MAX_VIEWS
from tenants.members import add_member
from tenants.models import Role, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.pages import HOSTILE, signed_in, text


def names(cast: Cast, user: User) -> list[str]:
    page = signed_in(user).get("/calls/").content.decode()
    return re.findall(r'aria-label="Delete view ([^"]*)"', page)


def save(user: User, name: str, query: str = "state:error  tool:a") -> str:
    answer = signed_in(user).post("/calls/views", {"name": name, "q": query}, follow=True)
    assert answer.status_code == 200
    return text(answer.content.decode())


def test_view_is_saved_listed_and_deleted(acme: Cast) -> None:
    assert "View “Bad ones” saved" in save(acme.viewer, "Bad ones")
    page = signed_in(acme.viewer).get("/calls/").content.decode()
    assert 'href="/calls/?q=state%3Aerror%20tool%3Aa" title="state:error tool:a"' in page
    (address,) = re.findall(r'action="(/calls/views/[^"]*/delete)"', page)
    answer = signed_in(acme.viewer).post(address, follow=True)
    assert "View “Bad ones” deleted" in text(answer.content.decode())
    assert names(acme, acme.viewer) == []


def test_saving_under_an_existing_name_replaces_the_view(acme: Cast) -> None:
    save(acme.viewer, "mine", "tool:a")
    save(acme.viewer, "mine", "tool:b")
    with tenant_scope(acme.tenant.id):
        (view,) = SavedView.objects.for_tenant(acme.tenant.id)
    assert view.query == "tool:b"


def test_views_are_private_to_their_user(acme: Cast) -> None:
    save(acme.viewer, "mine")
    assert names(acme, acme.admin) == []
    with tenant_scope(acme.tenant.id):
        (view,) = SavedView.objects.for_tenant(acme.tenant.id)
    assert signed_in(acme.admin).post(f"/calls/views/{view.id}/delete").status_code == 404
    assert names(acme, acme.viewer) == ["mine"]


def test_views_are_separate_for_each_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.VIEWER)
    client = signed_in(acme.viewer)
    client.post("/switch-tenant", {"tenant": str(globex.tenant.id)})
    client.post("/calls/views", {"name": "of globex", "q": "tool:a"})
    kept = "Delete view of globex"
    assert kept in client.get("/calls/").content.decode()
    client.post("/switch-tenant", {"tenant": str(acme.tenant.id)})
    assert kept not in client.get("/calls/").content.decode()


@pytest.mark.parametrize(
    ("name", "query", "expected"),
    [
        ("", "tool:a", "Enter a name of at most 60 characters"),
        ("x" * 61, "tool:a", "Enter a name of at most 60 characters"),
        ("a\x00b", "tool:a", "Enter a name of at most 60 characters"),
        ("fine", "", "Enter a query first"),
        ("fine", "nonsense:1", "Nothing was saved. At character 1: Unknown filter “nonsense”"),
        ("fine", "tool:a\x00", "Nothing was saved. At character 6: The value contains a character"),
    ],
)
def test_invalid_view_is_rejected(acme: Cast, name: str, query: str, expected: str) -> None:
    assert expected in save(acme.viewer, name, query)
    assert names(acme, acme.viewer) == []


@pytest.mark.slow
def test_number_of_views_is_limited(acme: Cast) -> None:
    for n in range(MAX_VIEWS):
        signed_in(acme.viewer).post("/calls/views", {"name": f"view {n}", "q": "tool:a"})
    assert "You already have 50 views" in save(acme.viewer, "one more")
    assert "View “view 7” saved" in save(acme.viewer, "view 7", "tool:b")


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if "\x00" not in one])
def test_hostile_names_are_escaped(acme: Cast, hostile: str) -> None:
    page = signed_in(acme.viewer).post(
        "/calls/views",
        {"name": hostile, "q": f'tool:"{hostile.replace(chr(34), "")}"'},
        follow=True,
    )
    shown = page.content.decode()
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
