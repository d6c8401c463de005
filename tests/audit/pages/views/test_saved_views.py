"""Saved views of the list of calls: by name, for each user in each tenant."""

import re

import pytest

from audit.models import SavedView
from audit.queries.saved_views import MAX_VIEWS
from tenants.members import add_member
from tenants.models import Role, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import HOSTILE, signed_in, text


def names(cast: Cast, user: User) -> list[str]:
    page = signed_in(user).get("/calls/").content.decode()
    return re.findall(r'aria-label="Delete view ([^"]*)"', page)


def save(user: User, name: str, query: str = "state:error  tool:a") -> str:
    answer = signed_in(user).post("/views/", {"name": name, "q": query}, follow=True)
    assert answer.status_code == 200
    return text(answer.content.decode())


def test_view_is_saved_listed_and_deleted(acme: Cast) -> None:
    assert "View “Bad ones” saved" in save(acme.viewer, "Bad ones")
    page = signed_in(acme.viewer).get("/calls/").content.decode()
    assert 'href="/calls/?q=state%3Aerror+tool%3Aa" title="state:error tool:a"' in page
    (address,) = re.findall(r'action="(/views/[^"]*/delete)"', page)
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
    assert signed_in(acme.admin).post(f"/views/{view.id}/delete").status_code == 404
    assert names(acme, acme.viewer) == ["mine"]


def test_views_are_separate_for_each_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.VIEWER)
    client = signed_in(acme.viewer)
    client.post("/switch-tenant", {"tenant": str(globex.tenant.id)})
    client.post("/views/", {"name": "of globex", "q": "tool:a"})
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
        signed_in(acme.viewer).post("/views/", {"name": f"view {n}", "q": "tool:a"})
    assert "You already have 50 views" in save(acme.viewer, "one more")
    assert "View “view 7” saved" in save(acme.viewer, "view 7", "tool:b")


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if "\x00" not in one])
def test_hostile_names_are_escaped(acme: Cast, hostile: str) -> None:
    page = signed_in(acme.viewer).post(
        "/views/",
        {"name": hostile, "q": f'tool:"{hostile.replace(chr(34), "")}"'},
        follow=True,
    )
    shown = page.content.decode()
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown


def view_of(cast: Cast, name: str) -> SavedView:
    with tenant_scope(cast.tenant.id):
        view: SavedView = SavedView.objects.for_tenant(cast.tenant.id).get(name=name)
        return view


def act(user: User, view: SavedView, what: str, **sent: str) -> str:
    answer = signed_in(user).post(f"/views/{view.id}/{what}", sent, follow=True)
    assert answer.status_code == 200
    return text(answer.content.decode())


def offered(user: User, page: str = "/calls/?plain=1") -> list[str]:
    shown = signed_in(user).get(page).content.decode()
    return re.findall(r'aria-label="Change view ([^"]*)"', shown)


@pytest.mark.slow
def test_shared_view_is_offered_to_the_tenant_and_taken_back(acme: Cast, globex: Cast) -> None:
    save(acme.editor, "ours")
    view = view_of(acme, "ours")
    shared = act(acme.editor, view, "change", name="Team failures", is_shared="on")
    assert "All members of the tenant are offered it" in shared
    assert offered(acme.viewer) == offered(acme.admin) == ["Team failures"]
    assert offered(globex.admin) == []
    assert names(acme, acme.viewer) == [], "only its owner and admins delete it"
    assert names(acme, acme.admin) == ["Team failures"]
    assert signed_in(acme.viewer).post(f"/views/{view.id}/delete").status_code == 404
    act(acme.editor, view, "change", name="Team failures")
    assert offered(acme.viewer) == []


@pytest.mark.slow
def test_viewers_share_nothing_and_rename_their_own(acme: Cast) -> None:
    save(acme.viewer, "mine")
    view = view_of(acme, "mine")
    assert "Editors and admins can share" in act(
        acme.viewer, view, "change", name="x", is_shared="on"
    )
    act(acme.viewer, view, "change", name="renamed")
    assert (view_of(acme, "renamed").is_shared, names(acme, acme.viewer)) == (False, ["renamed"])
    save(acme.viewer, "other")
    taken = act(acme.viewer, view, "change", name="other")
    assert "You have another view of this name" in taken
    assert sorted(names(acme, acme.viewer)) == ["other", "renamed"]


@pytest.mark.slow
def test_page_opens_with_the_default_view_of_its_reader(acme: Cast) -> None:
    save(acme.editor, "ours", "tool:a")
    view = view_of(acme, "ours")
    act(acme.editor, view, "change", name="ours", is_shared="on")
    assert "opens with the view “ours”" in act(acme.viewer, view, "default")
    client = signed_in(acme.viewer)
    assert client.get("/calls/").headers["Location"] == "/calls/?q=tool%3Aa"
    assert client.get("/calls/?plain=1").status_code == 200
    assert client.get("/calls/?q=tool:b").status_code == 200
    assert signed_in(acme.admin).get("/calls/").status_code == 200
    act(acme.viewer, view, "default", off="1")
    assert client.get("/calls/").status_code == 200
    act(acme.viewer, view, "default")
    act(acme.editor, view, "delete")
    assert client.get("/calls/").status_code == 200, "a deleted view opens nothing"


@pytest.mark.parametrize(
    ("page", "address", "query"),
    [
        ("traces", "/traces/", "state=failed&sort=duration"),
        ("violations", "/violations/", "tool=a&range=7d"),
        ("latency", "/latency/", "sort=p99&range=1h"),
        ("costs", "/costs/", "range=30d"),
    ],
)
def test_other_pages_have_views_of_their_own(
    acme: Cast, page: str, address: str, query: str
) -> None:
    client = signed_in(acme.viewer)
    saved = client.post("/views/", {"name": f"of {page}", "q": query, "page": page})
    assert saved.headers["Location"] == f"{address}?{query}"
    assert offered(acme.viewer, f"{address}?{query}") == [f"of {page}"]
    assert offered(acme.viewer) == []
    act(acme.viewer, view_of(acme, f"of {page}"), "default")
    assert client.get(address).headers["Location"] == f"{address}?{query}"
    again = client.post("/views/", {"name": f"of {page}", "q": "tool:a"}, follow=True)
    assert "You have another view of this name" in text(again.content.decode())


def test_view_of_an_unknown_page_is_rejected(acme: Cast) -> None:
    answer = signed_in(acme.viewer).post(
        "/views/", {"name": "x", "q": "a=b", "page": "//evil.example"}, follow=True
    )
    assert "This page has no views" in text(answer.content.decode())
    assert names(acme, acme.viewer) == []


@pytest.mark.parametrize("page", ["calls", "traces"])
def test_columns_are_chosen_by_each_viewer(acme: Cast, page: str) -> None:
    calls = make_call(run_id="run-7", context={"agent": "planner", "model": "m-1"})
    send_events(acme.tenant, calls)
    client = signed_in(acme.viewer)

    def heads(user: User) -> list[str]:
        shown = signed_in(user).get(f"/{page}/?plain=1").content.decode()
        row = shown[shown.index("<thead>") : shown.index("</thead>")]
        return [text(one).split()[0] for one in re.findall(r"<th .*?</th>", row, re.S)]

    usual = heads(acme.viewer)
    wanted = ["run", "agent", "model"] if page == "calls" else ["run", "ended"]
    sent = {"page": page, "column": [*wanted, "nonsense"], "q": ""}
    assert client.post("/views/columns", sent).status_code == 302
    shown_heads = {"run": "Run", "agent": "Agent", "model": "Model", "ended": "Last"}
    assert heads(acme.viewer) == [*usual[:3], *(shown_heads[each] for each in wanted)]
    assert heads(acme.admin) == usual
    shown = text(client.get(f"/{page}/?plain=1").content.decode())
    assert "run-7" in shown
    assert ("planner" in shown) == (page == "calls")
    client.post("/views/columns", {"page": page, "usual": "1"})
    assert heads(acme.viewer) == usual
    assert client.post("/views/columns", {"page": "tools"}).status_code == 404
