"""One tenant never sees another's data: every route, knocked at by a stranger.

The views run as they do in production: as the application role, in real transactions.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.test.client import MULTIPART_CONTENT
from django.urls import reverse

from audit.models import Invocation
from tenants.members import add_member
from tenants.models import Role, Scope
from tenants.scope import tenant_scope
from tests.isolation.routes import ROUTES, Listing, Object, Open, Visit, all_routes, make_event
from tests.isolation.world import WITHOUT_TEXT, World, count_rows, make_world, tenant_tables

CLOSED = {route: visit for route, visit in ROUTES.items() if not isinstance(visit, Open)}
PAGES = sorted(route for route, visit in CLOSED.items() if visit.scope is None)
API = sorted(CLOSED.keys() - PAGES)
SHOWN = sorted(
    route
    for route, visit in CLOSED.items()
    if (visit.is_read if isinstance(visit, Object) else visit.shows_canary)
)


@pytest.fixture(scope="module")
def theirs() -> World:
    """The tenant that must not be seen."""
    return make_world("acme")


@pytest.fixture
def own() -> World:
    """The stranger's own tenant, which has everything, too."""
    return make_world("globex")


@pytest.fixture(scope="module")
def double(theirs: World) -> World:
    """A tenant whose admin is a member of the other one, too, and has chosen this one."""
    world = make_world("initech")
    with tenant_scope(theirs.tenant.id):
        add_member(theirs.tenant, world.admin, Role.ADMIN)
    return world


def _text(response: HttpResponseBase) -> str:
    """Body and headers."""
    body = response.getvalue()
    return str(body.decode(errors="replace")) + repr(sorted(response.headers.items()))


def _path(visit: Visit, named: World) -> str:
    return visit.path(named) if isinstance(visit, Object) else visit.path


def _knock(visit: Visit, visitor: World, named: World, client: Client) -> Iterator[Any]:
    """GET and POST the things of `named`, as a page and as a fragment; (method, response)."""
    path = _path(visit, named)
    data = visit.data(named) if isinstance(visit, Listing) else {"tenant": str(named.tenant.id)}
    scope = None if isinstance(visit, Open) else visit.scope
    headers = {"Authorization": f"Bearer {visitor.key(scope)}"} if scope else {}
    kind = visit.content_type if scope and isinstance(visit, Listing) else MULTIPART_CONTENT
    for extra in ({}, {"HX-Request": "true"}):
        yield "GET", client.get(path, headers={**headers, **extra})
        yield "POST", client.post(path, data, content_type=kind, headers={**headers, **extra})


def test_every_route_is_walked() -> None:
    routes = all_routes()
    missing = [
        f"  {route!r}  ({pattern.lookup_str}, name {pattern.name!r})"
        for route, pattern in routes.items()
        if route not in ROUTES
    ]
    assert not missing, (
        "These routes are not walked as another tenant:\n"
        + "\n".join(missing)
        + "\nAdd each to ROUTES in tests/isolation/routes.py, under the text quoted above:\n"
        '  Object(lambda world: f"/calls/{world.call_id}")  if its address names something of a'
        " tenant (404 for others; is_read=False if GET does not show it; scope=… for the API)\n"
        '  Listing("/calls/")  if it names nothing (shows_canary=False if there is nothing to'
        " see; data=… for what a POST carries)\n"
        '  Open("/login", "why")  if it shows nothing of any tenant to anybody.\n'
        "If it shows a new kind of thing, plant one in tests/isolation/world.py."
    )
    gone = sorted(set(ROUTES) - set(routes))
    assert not gone, f"No longer routes, remove them from tests/isolation/routes.py: {gone}"


def test_every_table_of_a_tenant_holds_the_canary(theirs: World) -> None:
    with tenant_scope(theirs.tenant.id):
        bare = [
            table
            for table in tenant_tables()
            if table not in WITHOUT_TEXT and count_rows(table, theirs.canary) == 0
        ]
    assert not bare, (
        f"No canary in {bare}: the walk proves nothing for them. Plant one in"
        " tests/isolation/world.py, or list the table in its WITHOUT_TEXT with the reason."
    )


@pytest.mark.parametrize("route", sorted(CLOSED))
def test_a_stranger_finds_nothing(route: str, theirs: World, own: World) -> None:
    visit = CLOSED[route]
    statuses = set()
    for method, response in _knock(visit, own, theirs, own.client()):
        assert theirs.canary not in _text(response), f"{method} shows another tenant's text"
        statuses.add(response.status_code)
    if isinstance(visit, Object):
        assert 404 in statuses
        assert statuses <= {404, 405}, "neither absent nor the wrong method: something was found"


@pytest.mark.parametrize("route", [route for route in PAGES if route != "switch-tenant"])
def test_who_belongs_to_both_sees_only_the_chosen_one(
    route: str, theirs: World, double: World
) -> None:
    visit, client = CLOSED[route], double.client()
    client.post(reverse("tenant_switch"), {"tenant": str(double.tenant.id)})
    for method, response in _knock(visit, double, theirs, client):
        # The switcher names the other tenant, and that is all of it there is to be seen.
        shown = _text(response).replace(theirs.tenant.name, "")
        assert theirs.canary not in shown, f"{method} shows the other tenant's text"
        if isinstance(visit, Object):
            assert response.status_code in {404, 405}


@pytest.mark.parametrize("route", SHOWN)
def test_its_own_admin_is_shown_it(route: str, theirs: World) -> None:
    _, response = next(_knock(CLOSED[route], theirs, theirs, theirs.client()))
    assert response.status_code == 200
    assert theirs.canary in _text(response), "the walk as a stranger would prove nothing"


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_who_is_not_signed_in_sees_nothing(route: str, theirs: World) -> None:
    visit = ROUTES[route]
    path = _path(visit, theirs)
    for response in (Client().get(path), Client().post(path)):
        if response.status_code == 302:
            if not isinstance(visit, Open):
                assert response["Location"].startswith("/login?next="), "not sent to sign in"
            # The way back, after signing in, is what the stranger asked for.
            assert theirs.canary not in response.content.decode()
        else:
            assert theirs.canary not in _text(response)
            assert isinstance(visit, Open) or response.status_code in {401, 405}


@pytest.mark.parametrize("route", PAGES)
def test_a_key_opens_no_page(route: str, own: World) -> None:
    client = Client(headers={"Authorization": f"Bearer {own.key(Scope.READ)}"})
    path = _path(CLOSED[route], own)
    assert {client.get(path).status_code, client.post(path).status_code} <= {302, 405}


@pytest.mark.parametrize("route", API)
def test_a_session_opens_no_api(route: str, own: World) -> None:
    client, path = own.client(), _path(CLOSED[route], own)
    assert {client.get(path).status_code, client.post(path).status_code} <= {401, 405}


def test_a_strangers_event_about_the_same_call_is_another_call(theirs: World, own: World) -> None:
    def calls(world: World) -> list[str]:
        with tenant_scope(world.tenant.id):
            found = Invocation.objects.filter(
                tenant_id=world.tenant.id, invocation_id=theirs.call_id
            )
            return [call.tool_name for call in found]

    headers = {
        "Authorization": f"Bearer {own.key(Scope.INGEST)}",
        "Idempotency-Key": str(theirs.batch_id),
    }
    answer = Client(headers=headers).post(
        "/api/v1/events", make_event(theirs), content_type="application/x-ndjson"
    )
    assert (answer.status_code, answer.json()["rejected"]) == (200, [])
    assert calls(theirs) == [theirs.canary]
    assert calls(own) == ["stranger"]
