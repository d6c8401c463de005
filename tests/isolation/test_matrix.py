"""Every route by tenant, role and method, compared with its declaration in `routes.ROUTES`.

A route without a declaration fails `test_other_tenants.test_every_route_is_covered`. A route with
an undeclared method fails here; the failure says which status it returned.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.test.client import MULTIPART_CONTENT

from tenants import access
from tenants.members import add_member
from tenants.models import Membership, Role, Scope, User
from tenants.scope import tenant_scope
from tests.isolation.routes import ROUTES, UNSAFE, Listing, Object, Open, Visit, opens_to
from tests.isolation.world import World, make_world
from tests.support.factories import make_user
from tests.support.pages import signed_in

METHODS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "POST")
"""POST is last: it may delete the object that the other methods request."""
PAGES = sorted(
    route for route, visit in ROUTES.items() if isinstance(visit, Open) or visit.scope is None
)
API = sorted(ROUTES.keys() - PAGES)
HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Visitor:
    """Who sends requests: from which tenant, with which role. Without a tenant there is no role."""

    relation: str
    role: Role | None
    user: User | None
    client: Client

    def __str__(self) -> str:
        return f"{self.relation} {self.role or ''}".strip()


@pytest.fixture(scope="module")
def foreign() -> World:
    """The tenant whose objects members of another tenant request."""
    return make_world("acme")


@pytest.fixture(scope="module")
def others() -> dict[Role, User]:
    """A member of each role of the other tenant, which has rows in every table, too."""
    world = make_world("globex")
    users = {role: make_user(role.value) for role in Role}
    with tenant_scope(world.tenant.id):
        for role, user in users.items():
            add_member(world.tenant, user, role)
    return users


def expected(visit: Visit, method: str, visitor: Visitor) -> int:
    """The status that a visitor gets according to the declaration."""
    answers = visit.answers
    if isinstance(visit, Open) and visitor.relation != "anonymous":
        answers = {**answers, **visit.signed_in}
    is_api = not isinstance(visit, Open) and visit.scope is not None
    if method == "HEAD" and "HEAD" not in answers:
        method = "GET"
    if method not in answers:
        return 405
    if isinstance(visit, Open):
        return answers[method]
    if is_api:
        return 401
    if visitor.relation == "anonymous":
        return 302
    if visitor.role is None and isinstance(visit, Listing) and not visit.needs_tenant:
        return answers[method]
    if visitor.role is None or not opens_to(visit, visitor.role):
        return 403
    if isinstance(visit, Object) and visitor.relation == "other":
        return 404
    if isinstance(visit, Object) and visit.needs_reveal and visitor.role is Role.AUDITOR:
        return 403
    if isinstance(visit, Listing) and visitor.relation == "other":
        return visit.of_others.get(method, answers[method])
    return answers[method]


def send(visit: Visit, method: str, named: World, client: Client, **headers: str) -> Any:
    """The response to a request for the route's object in a world."""
    address = visit.path(named) if isinstance(visit, Object) else visit.path
    data = visit.data(named) if isinstance(visit, Listing) else {"tenant": str(named.tenant.id)}
    if method != "POST":
        return client.generic(method, address, headers=headers)
    is_api = isinstance(visit, Listing) and visit.scope is not None
    kind = visit.content_type if is_api else MULTIPART_CONTENT  # type: ignore[union-attr]  # is_api
    return client.post(address, data, content_type=kind, headers=headers)


def visitors(foreign: World, others: dict[Role, User]) -> Iterator[tuple[Visitor, World]]:
    """Every kind of visitor, each with the world whose objects they request."""
    yield Visitor("anonymous", None, None, Client()), foreign
    nobody = make_user("nobody")
    yield Visitor("none", None, nobody, signed_in(nobody)), foreign
    for role, user in others.items():
        yield Visitor("other", role, user, signed_in(user)), foreign
    for role in Role:
        yield own_visitor(role)


def own_visitor(role: Role) -> tuple[Visitor, World]:
    """A member with this role in a new world.

    The member is the one who created the objects, because some are visible to their owner only.
    """
    own = make_world("initech")
    with tenant_scope(own.tenant.id):
        membership = Membership.objects.filter(tenant=own.tenant, pk=own.membership.pk)
        membership.update(role=role)
    return Visitor("own", role, own.admin, own.client()), own


@pytest.fixture(scope="module")
def everybody(foreign: World, others: dict[Role, User]) -> list[tuple[Visitor, World]]:
    """All visitors, for requests that change nothing."""
    return list(visitors(foreign, others))


def may_change(visit: Visit, visitor: Visitor) -> bool:
    """Whether one of the visitor's requests may change the world or the session."""
    if isinstance(visit, Open):
        return True
    refusals = {401, 403, 404, 405}
    return any(expected(visit, method, visitor) not in refusals for method in UNSAFE)


@pytest.mark.slow
@pytest.mark.generated(24)
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_each_route_answers_as_declared(route: str, everybody: list[tuple[Visitor, World]]) -> None:
    visit = ROUTES[route]
    wrong = []
    for visitor, named in everybody:
        cache.clear()  # where attempts to sign in from this address are counted
        if visitor.relation == "own" and may_change(visit, visitor):
            assert visitor.role is not None
            visitor, named = own_visitor(visitor.role)
        elif visitor.user is not None and may_change(visit, visitor):
            visitor = replace(visitor, client=signed_in(visitor.user))
        for method in METHODS:
            answer = send(visit, method, named, visitor.client)
            wanted = expected(visit, method, visitor)
            if answer.status_code != wanted:
                wrong.append(f"{visitor}: {method} is {answer.status_code}, declared {wanted}")
            elif wanted == 302 and visitor.relation == "anonymous" and not isinstance(visit, Open):
                assert answer.get("Location", "").startswith("/login?next=")
            elif wanted in {401, 403, 404}:
                assert named.canary not in answer.content.decode()
            if isinstance(visit, Open) and visitor.role is not None:
                assert visitor.user is not None
                visitor.client.force_login(visitor.user)  # may have signed out
    assert not wrong, f"tests/isolation/routes.py, {route!r}:\n" + "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("route", ["settings/keys", "inbox/<uuid:pk>/discard"])
def test_missing_role_check_would_be_detected(
    route: str, foreign: World, others: dict[Role, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "has_role", lambda membership, role: True)
    with pytest.raises(AssertionError, match=r"viewer: POST is .*, declared 403"):
        test_each_route_answers_as_declared(route, list(visitors(foreign, others)))


@pytest.fixture(scope="module")
def keys(foreign: World) -> dict[Scope, str]:
    """An API key of each scope."""
    return {scope: foreign.key(scope) for scope in Scope}


@pytest.mark.slow
@pytest.mark.generated(20)
@pytest.mark.parametrize("route", API)
def test_each_api_route_answers_each_scope_as_declared(
    route: str, foreign: World, keys: dict[Scope, str]
) -> None:
    visit = ROUTES[route]
    assert not isinstance(visit, Open)
    named = foreign
    if isinstance(visit, Object) and any(each in visit.answers for each in UNSAFE):
        named = make_world("acme")  # an act of another test may have removed or ended its object
        keys = {scope: named.key(scope) for scope in keys}
    for scope, key in keys.items():
        for method in METHODS:
            headers = {"Authorization": f"Bearer {key}"}
            answer = send(visit, method, named, Client(enforce_csrf_checks=True), **headers)
            as_method = "GET" if method == "HEAD" else method
            wanted = visit.answers.get(as_method, 405)
            opens = visit.scopes.get(as_method, visit.scope)
            if wanted != 405 and scope is not opens:
                wanted = 403
            assert answer.status_code == wanted, f"{scope} {method}"


@pytest.fixture(scope="module")
def strict(foreign: World) -> Client:
    """A client with Django's CSRF protection, which the test client disables by default."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(foreign.admin)
    return client


@pytest.mark.slow
@pytest.mark.generated(30)
@pytest.mark.parametrize("route", PAGES)
def test_cross_site_form_is_rejected(route: str, foreign: World, strict: Client) -> None:
    visit = ROUTES[route]
    for method in UNSAFE:
        answer = send(visit, method, foreign, strict)
        if route in {"api/v1/docs", "api/v1/openapi.json"}:  # API routes: 405
            assert answer.status_code == 405, method
            continue
        # A form of the provider's site, about a request of this session; and what takes no cookies.
        if route.endswith("/acs") or route.startswith("mcp/"):
            assert answer.status_code == visit.answers.get(method, 405), method
            continue
        assert answer.status_code == 403, method
        assert "The form has expired" in answer.content.decode()


@pytest.fixture(scope="module")
def admin(foreign: World) -> Client:
    """A signed-in admin, for requests that do not sign out."""
    return foreign.client()


@pytest.mark.slow
@pytest.mark.generated(30)
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_every_answer_has_security_headers(route: str, foreign: World, admin: Client) -> None:
    """Pages, files, errors and redirects."""
    visit = ROUTES[route]
    for client in (admin, Client()):
        for method in ("GET", "PUT"):
            answer = send(visit, method, foreign, client)
            assert {name: answer.get(name) for name in HEADERS} == HEADERS
            policy = answer["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            if not isinstance(visit, Open) and visit.scope is None and answer.status_code == 200:
                assert "no-store" in answer["Cache-Control"] or "private" in answer["Cache-Control"]
