"""No tenant sees data of another: every route is requested by a member of another tenant.

The views run as they do in production: as the application role, in real transactions.
"""

import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client
from django.test.client import MULTIPART_CONTENT
from django.urls import URLPattern, get_resolver, include, path, reverse

from audit.models import Invocation
from config.http.request_ids import HEADER
from tenants import access
from tenants.keys import create_key
from tenants.members import add_member
from tenants.models import Role, Scope, Tenant
from tenants.scope import tenant_scope
from tests.isolation.routes import (
    ASKING,
    ROUTES,
    Listing,
    Object,
    Open,
    Visit,
    all_routes,
    imagined,
    is_read_only,
    make_event,
)
from tests.isolation.world import WITHOUT_TEXT, World, count_rows, make_world, tenant_tables
from tests.support.factories import make_tenant

CLOSED = {route: visit for route, visit in ROUTES.items() if not isinstance(visit, Open)}
PAGES = sorted(route for route, visit in CLOSED.items() if visit.scope is None)
API = sorted(CLOSED.keys() - PAGES)
SHOWN = sorted(
    route
    for route, visit in CLOSED.items()
    if (visit.is_read if isinstance(visit, Object) else visit.shows_canary)
)
_FRESH = re.compile(
    r"nonce-[^']+'|nonce=\"[^\"]+|name=\"csrfmiddlewaretoken\" value=\"\w+|'Expires', '[^']+'"
    r"|\d{8}T\d{6}Z?"  # the second in the name of an export's file
)
"""What differs in every response."""
PERSONAL = {
    "calls/search/<uuid:pk>",
    "calls/search/<uuid:pk>/cancel",
    "calls/views/<uuid:pk>/delete",
}
"""Routes of objects that belong to one member: anybody else gets 404, in any tenant."""
LEAKY = [
    route
    for route in PAGES
    if route in SHOWN or (isinstance(CLOSED[route], Object) and route != "switch-tenant")
    if route not in PERSONAL
]
"""Pages that show which tenant is selected. The switcher reads memberships, not the selection."""


@pytest.fixture(scope="module")
def foreign() -> World:
    """The tenant whose data must not be shown."""
    return make_world("acme")


@pytest.fixture(scope="module")
def own() -> World:
    """The visitor's own tenant, with rows in every table, too. For requests that change nothing."""
    return make_world("globex")


def _visiting(visit: Visit, own: World) -> World:
    """The visitor's world: a new one if the route may change it.

    An Object is always requested from another world, so the visitor's does not change.
    """
    return own if isinstance(visit, Object) or is_read_only(visit) else make_world("globex")


@pytest.fixture(scope="module")
def double(foreign: World) -> World:
    """A tenant whose admin is a member of `foreign`, too, and has selected this one."""
    world = make_world("initech")
    with tenant_scope(foreign.tenant.id):
        add_member(foreign.tenant, world.admin, Role.ADMIN)
    return world


def _text(response: HttpResponseBase) -> str:
    """Body and headers, without the id that each answer has."""
    body = response.getvalue()
    headers = {name: value for name, value in response.headers.items() if name != HEADER}
    return str(body.decode(errors="replace")) + repr(sorted(headers.items()))


def _blurred(response: HttpResponseBase, world: World) -> str:
    """Body and headers without what differs each time, and without the requested ids."""
    text = _FRESH.sub("", _text(response))
    ids = (world.call_id, world.tool_id, world.refused_id, world.view_id, world.search_id)
    for name in (world.canary, *ids, world.tenant.id):
        text = text.replace(str(name), "…")
    return text.replace(str(world.api_key.pk), "…").replace(str(world.membership.pk), "…")


def _path(visit: Visit, named: World) -> str:
    return visit.path(named) if isinstance(visit, Object) else visit.path


def _request_all(visit: Visit, visitor: World, named: World, client: Client) -> Iterator[Any]:
    """Request the objects of `named` by each method, as a page and as a fragment.

    Yields the method and the response.
    """
    address = _path(visit, named)
    data = visit.data(named) if isinstance(visit, Listing) else {"tenant": str(named.tenant.id)}
    scope = None if isinstance(visit, Open) else visit.scope
    scopes = {} if isinstance(visit, Open) else visit.scopes
    headers = {"Authorization": f"Bearer {visitor.key(scope)}"} if scope else {}
    by_method = {
        method: {"Authorization": f"Bearer {visitor.key(each)}"} for method, each in scopes.items()
    }
    kind = visit.content_type if scope and isinstance(visit, Listing) else MULTIPART_CONTENT
    for extra in ({}, {"HX-Request": "true"}):
        yield "GET", client.get(address, headers={**headers, **extra})
        yield (
            "POST",
            client.post(
                address,
                data,
                content_type=kind,
                headers={**by_method.get("POST", headers), **extra},
            ),
        )
    for method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
        yield method, client.generic(method, address, headers=by_method.get(method, headers))


def _check_routes(routes: dict[str, URLPattern]) -> None:
    missing = [
        f"  {route!r}  ({pattern.lookup_str}, name {pattern.name!r})"
        for route, pattern in routes.items()
        if route not in ROUTES
    ]
    assert not missing, (
        "These routes are not requested by a member of another tenant:\n"
        + "\n".join(missing)
        + "\nAdd each to ROUTES in tests/isolation/routes.py, with the quoted text as its key:\n"
        '  Object(lambda world: f"/calls/{world.call_id}")  if its address contains the id of an'
        " object (404 for others; is_read=False if GET does not show it; scope=… for the API)\n"
        '  Listing("/calls/")  if it contains no id (shows_canary=False if it shows no texts of'
        " the tenant; data=… is the body of a POST)\n"
        '  Open("/login", "why")  if it shows no data of any tenant.\n'
        "answers={'POST': 302}  is the status by method, if that is not GET alone with 200;"
        " role=… and needs_payloads=True restrict who may open it.\n"
        "If it shows a new kind of object, add one to tests/isolation/world.py."
    )
    gone = sorted(set(ROUTES) - set(routes))
    assert not gone, f"These routes do not exist, remove them from routes.py: {gone}"


def test_every_route_is_covered() -> None:
    _check_routes(all_routes())


def test_forgotten_route_would_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = ModuleType("forgetful")
    part = [path("<uuid:pk>", lambda request, pk: HttpResponse(), name="export")]
    vars(forgetful)["urlpatterns"] = [path("", include("config.urls")), path("out/", include(part))]
    monkeypatch.setitem(sys.modules, "forgetful", forgetful)
    with pytest.raises(AssertionError, match=r"'out/<uuid:pk>'.*'export'"):
        _check_routes(all_routes("forgetful"))
    with pytest.raises(AssertionError, match="These routes do not exist"):
        _check_routes({})


def test_every_tenant_table_contains_the_canary(foreign: World) -> None:
    with tenant_scope(foreign.tenant.id):
        bare = [
            table
            for table in tenant_tables()
            if table not in WITHOUT_TEXT and count_rows(table, foreign.canary) == 0
        ]
    assert not bare, (
        f"No canary in {bare}: these tests prove nothing for them. Add one in"
        " tests/isolation/world.py, or list the table in its WITHOUT_TEXT with the reason."
    )


def _check_sees_nothing(visit: Visit, foreign: World, own: World) -> None:
    statuses = set()
    for method, response in _request_all(visit, own, foreign, own.client()):
        assert foreign.canary not in _text(response), f"{method} shows another tenant's text"
        statuses.add(response.status_code)
    if isinstance(visit, Object):
        assert statuses <= {404, 405}, "the object must look absent: only 404 and 405 are allowed"
        assert 404 in statuses, "no method returned 404"


@pytest.mark.generated(50)
@pytest.mark.parametrize("route", sorted(CLOSED))
def test_member_of_another_tenant_sees_nothing(route: str, foreign: World, own: World) -> None:
    _check_sees_nothing(CLOSED[route], foreign, _visiting(CLOSED[route], own))


@pytest.fixture(scope="module")
def entered() -> World:
    """The tenant that a wrong page selects. For requests that do not change it."""
    return make_world("hooli")


@pytest.mark.slow
@pytest.mark.generated(20)
@pytest.mark.parametrize("route", LEAKY)
def test_page_with_the_wrong_tenant_would_be_detected(
    route: str, own: World, entered: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Select the other tenant for the visitor: `_check_sees_nothing` must fail."""
    visit = CLOSED[route]
    own = _visiting(visit, own)
    foreign = entered if is_read_only(visit) else make_world("hooli")

    enter_tenant = access.enter_tenant

    def enter_wrong_tenant(request: HttpRequest) -> access.TenantRequest | None:
        entered = enter_tenant(request)
        assert entered is not None
        entered.tenant = foreign.tenant
        return entered

    assert get_resolver().url_patterns, "all pages are imported before, with the right function"
    monkeypatch.setattr(access, "enter_tenant", enter_wrong_tenant)
    with pytest.raises(AssertionError, match=r"another tenant's text|must look absent"):
        _check_sees_nothing(visit, foreign, own)


@pytest.mark.slow
@pytest.mark.generated(30)
@pytest.mark.parametrize("route", sorted(r for r, v in CLOSED.items() if isinstance(v, Object)))
def test_foreign_object_is_indistinguishable_from_a_missing_one(
    route: str, foreign: World, own: World
) -> None:
    visit, client, nowhere = CLOSED[route], own.client(), imagined(foreign)
    of_foreign = _request_all(visit, own, foreign, client)
    of_nothing = _request_all(visit, own, nowhere, client)
    for (method, existing), (_, missing) in zip(of_foreign, of_nothing, strict=True):
        assert existing.status_code == missing.status_code, method
        assert _blurred(existing, foreign) == _blurred(missing, nowhere), method


@pytest.mark.parametrize("ask", ASKING)
def test_own_page_with_a_foreign_id_is_indistinguishable_from_a_missing_id(
    ask: Callable[[World, World], str], foreign: World
) -> None:
    own = make_world("globex")  # a new one: its audit log keeps the queries
    client, nowhere = own.client(), imagined(foreign)
    existing, missing = client.get(ask(own, foreign)), client.get(ask(own, nowhere))
    assert existing.status_code == missing.status_code == 200
    assert _blurred(existing, foreign) == _blurred(missing, nowhere)


@pytest.mark.slow
@pytest.mark.generated(30)
@pytest.mark.parametrize("route", [route for route in PAGES if route != "switch-tenant"])
def test_member_of_two_tenants_sees_only_the_selected_one(
    route: str, foreign: World, double: World
) -> None:
    visit, client = CLOSED[route], double.client()
    client.post(reverse("tenant_switch"), {"tenant": str(double.tenant.id)})
    for method, response in _request_all(visit, double, foreign, client):
        # The switcher shows the other tenant's name, and nothing else of it.
        shown = _text(response).replace(foreign.tenant.name, "")
        assert foreign.canary not in shown, f"{method} shows the other tenant's text"
        if isinstance(visit, Object):
            assert response.status_code in {404, 405}


@pytest.mark.slow
@pytest.mark.generated(30)
@pytest.mark.parametrize("route", SHOWN)
def test_own_admin_sees_the_canary(route: str, foreign: World) -> None:
    _, response = next(_request_all(CLOSED[route], foreign, foreign, foreign.client()))
    assert response.status_code == 200
    assert foreign.canary in _text(response), "if its own admin does not see it, nothing is proved"


@pytest.mark.slow
@pytest.mark.generated(40)
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_anonymous_user_sees_nothing(route: str, foreign: World) -> None:
    visit = ROUTES[route]
    address = _path(visit, foreign)
    for response in (Client().get(address), Client().post(address)):
        if response.status_code == 302:
            if not isinstance(visit, Open):
                assert response["Location"].startswith("/login?next="), "no redirect to the login"
            # Location repeats the requested address, so only the body is checked.
            assert foreign.canary not in response.content.decode()
        else:
            assert foreign.canary not in _text(response)
            assert isinstance(visit, Open) or response.status_code in {401, 405}


@pytest.mark.slow
@pytest.mark.generated(20)
@pytest.mark.parametrize("route", PAGES)
def test_api_key_opens_no_page(route: str, own: World) -> None:
    client = Client(headers={"Authorization": f"Bearer {own.key(Scope.READ)}"})
    address = _path(CLOSED[route], own)
    assert {client.get(address).status_code, client.post(address).status_code} <= {302, 405}


@pytest.mark.slow
@pytest.mark.generated(20)
@pytest.mark.parametrize("route", API)
def test_session_opens_no_api(route: str, own: World) -> None:
    client, address = own.client(), _path(CLOSED[route], own)
    assert {client.get(address).status_code, client.post(address).status_code} <= {401, 405}


def test_event_of_another_tenant_with_the_same_call_id_is_a_separate_call(
    foreign: World,
) -> None:
    own = make_world("globex")  # a new one: it gets a call of that id

    def calls(world: World) -> list[str]:
        with tenant_scope(world.tenant.id):
            rows = Invocation.objects.filter(
                tenant_id=world.tenant.id, invocation_id=foreign.call_id
            )
            return [call.tool_name for call in rows]

    headers = {
        "Authorization": f"Bearer {own.key(Scope.INGEST)}",
        "Idempotency-Key": str(foreign.batch_id),
    }
    answer = Client(headers=headers).post(
        "/api/v1/events", make_event(foreign), content_type="application/x-ndjson"
    )
    assert (answer.status_code, answer.json()["rejected"]) == (200, [])
    assert calls(foreign) == [foreign.canary]
    assert calls(own) == ["stranger"]


def test_figures_cover_only_the_tenant_of_the_key(foreign: World) -> None:
    def figures(tenant: Tenant) -> dict[str, Any]:
        key = create_key(tenant, "reader", [Scope.READ])[1]
        answer = Client().get("/api/v1/summary", headers={"Authorization": f"Bearer {key}"})
        summary: dict[str, Any] = answer.json()
        return {name: summary[name] for name in ("calls", "open", "errors", "violations")}

    assert any(figures(foreign.tenant).values())
    assert not any(figures(make_tenant("empty")).values())
