"""What a page requires: sign-in, the session's tenant, a role, the tenant scope."""

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template import engines
from django.template.response import TemplateResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Membership, Role, User
from tenants.scope import TenantScopeError, current_tenant_id, tenant_scope
from tenants.zones import COOKIE
from tests.support.factories import Cast, make_user


def _request(user: User, tenant_id: object = None) -> HttpRequest:
    request = RequestFactory().get("/x")
    request.user = user
    request.session = {"tenant_id": str(tenant_id)}  # type: ignore[assignment]  # a session as a dict
    return request


@tenant_page()
def _which_tenant(request: TenantRequest) -> HttpResponseBase:
    assert current_tenant_id() == request.tenant.id
    return HttpResponse(str(request.tenant.id))


def test_anonymous_user_is_redirected_to_sign_in_with_the_url() -> None:
    answer = Client().get("/settings/keys?a=b")
    assert answer.status_code == 302
    assert answer["Location"] == "/login?next=/settings/keys%3Fa%3Db"


def test_htmx_request_after_sign_out_redirects_the_whole_page() -> None:
    answer = Client().get(
        "/settings/keys",
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/calls?state=open"},
    )
    assert answer["HX-Redirect"] == "/login?next=%2Fcalls%3Fstate%3Dopen"


def test_view_runs_inside_the_tenant_scope(acme: Cast) -> None:
    answer = _which_tenant(_request(acme.viewer))
    assert isinstance(answer, HttpResponse)
    assert answer.content.decode() == str(acme.tenant.id)
    with pytest.raises(TenantScopeError):
        current_tenant_id()


def test_session_tenant_is_ignored_for_non_members(acme: Cast, globex: Cast) -> None:
    answer = _which_tenant(_request(acme.viewer, globex.tenant.id))
    assert isinstance(answer, HttpResponse)
    assert answer.content.decode() == str(acme.tenant.id)


def test_template_response_is_rendered_inside_the_scope(acme: Cast) -> None:
    template = engines["django"].from_string("{{ rows.count }}")

    @tenant_page()
    def view(request: TenantRequest) -> HttpResponseBase:
        return TemplateResponse(request, template, {"rows": Membership.objects.all()})

    answer = view(_request(acme.viewer))
    assert isinstance(answer, TemplateResponse)
    assert answer.content == b"4"


def test_page_is_not_cached_by_the_browser(acme: Cast) -> None:
    assert "no-store" in _which_tenant(_request(acme.viewer))["Cache-Control"]


def test_failing_view_is_rolled_back(acme: Cast) -> None:
    @tenant_page()
    def view(request: TenantRequest) -> HttpResponseBase:
        Membership.objects.filter(user=acme.editor).delete()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        view(_request(acme.viewer))
    with tenant_scope(acme.tenant.id):
        assert Membership.objects.filter(user=acme.editor).exists()


@pytest.mark.parametrize(
    ("needed", "allowed"),
    [
        (Role.VIEWER, {"viewer", "editor", "auditor", "admin"}),
        (Role.EDITOR, {"editor", "admin"}),
        (Role.AUDITOR, {"auditor", "admin"}),
        (Role.ADMIN, {"admin"}),
    ],
)
def test_roles_open_the_expected_pages(needed: Role, allowed: set[str]) -> None:
    opened = {role.value for role in Role if has_role(Membership(role=role), needed)}
    assert opened == allowed


def test_member_without_the_role_gets_403(acme: Cast) -> None:
    @tenant_page(role=Role.ADMIN)
    def view(request: TenantRequest) -> HttpResponseBase:
        raise AssertionError("not reached")

    with pytest.raises(PermissionDenied):
        view(_request(acme.auditor))
    client = Client()
    client.force_login(acme.viewer)
    assert client.get("/settings/members").status_code == 403


def test_user_without_a_tenant_gets_an_explanation() -> None:
    client = Client()
    client.force_login(make_user("nobody"))
    answer = client.get("/settings/keys")
    assert answer.status_code == 403
    assert "No tenant yet" in answer.content.decode()


def test_member_of_only_suspended_tenants_gets_an_explanation(acme: Cast, globex: Cast) -> None:
    client = Client()
    client.force_login(acme.admin)
    assert client.get("/settings/keys").status_code == 200
    acme.tenant.suspended_at = timezone.now()
    acme.tenant.save(update_fields=["suspended_at"])
    answer = client.get("/settings/keys")
    assert answer.status_code == 403
    assert "Suspended" in answer.content.decode()
    assert acme.tenant.name in answer.content.decode()
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.admin, role=Role.VIEWER)
    answer = client.get("/calls/")
    assert answer.status_code == 200
    assert acme.tenant.slug not in answer.content.decode()
    assert answer.context["request"].tenant == globex.tenant
    there = client.post(reverse("tenant_switch"), {"tenant": str(acme.tenant.pk)})
    assert there.status_code == 404


@pytest.mark.parametrize(
    ("user", "cookie", "tenant", "expected"),
    [
        ("Asia/Tokyo", "Europe/Oslo", "America/Lima", "Asia/Tokyo"),
        ("", "Europe/Oslo", "America/Lima", "Europe/Oslo"),
        ("", "", "America/Lima", "America/Lima"),
        ("No/Where", "../../etc/passwd", "America/Lima", "America/Lima"),
        ("", "", "", "UTC"),
    ],
)
def test_time_zone_comes_from_user_then_browser_then_tenant(
    acme: Cast, user: str, cookie: str, tenant: str, expected: str
) -> None:
    type(acme.admin).objects.filter(pk=acme.admin.pk).update(time_zone=user)
    acme.tenant.time_zone = tenant
    acme.tenant.save(update_fields=["time_zone"])
    client = Client()
    client.force_login(acme.admin)
    client.cookies[COOKIE] = cookie
    assert str(client.get("/").context["range"].zone) == expected


def test_switcher_changes_the_tenant_of_the_session(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.admin, role=Role.ADMIN)
    client = Client()
    client.force_login(acme.admin)
    for cast, others in ((globex, acme), (acme, globex)):
        answer = client.post(reverse("tenant_switch"), {"tenant": str(cast.tenant.id)})
        assert answer.status_code == 302
        members = client.get(reverse("member_list")).content.decode()
        assert cast.viewer.username in members
        assert others.viewer.username not in members


@pytest.mark.parametrize("wanted", ["", "x", "00000000-0000-0000-0000-000000000000"])
def test_user_cannot_switch_to_a_foreign_tenant(acme: Cast, globex: Cast, wanted: str) -> None:
    client = Client()
    client.force_login(acme.admin)
    for tenant_id in (wanted, str(globex.tenant.id)):
        answer = client.post(reverse("tenant_switch"), {"tenant": tenant_id})
        assert answer.status_code == 404
    assert client.get(reverse("tenant_switch")).status_code == 405


def test_removed_member_loses_access_at_the_next_request(acme: Cast) -> None:
    client = Client()
    client.force_login(acme.admin)
    assert client.get(reverse("key_list")).status_code == 200
    with tenant_scope(acme.tenant.id):
        Membership.objects.filter(user=acme.admin).delete()
    assert "No tenant yet" in client.get(reverse("key_list")).content.decode()
