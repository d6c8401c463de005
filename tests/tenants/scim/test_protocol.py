"""What directories send, and what is refused: filters, pages, versions, limits, hostile bodies."""

import json
from typing import Any

import pytest

from config.http.quota import Quota
from tenants.admin_acts import end_key
from tenants.identity.providers import switch_provider
from tenants.keys import create_key
from tenants.models import ApiKey, DirectoryUser, IdentityProvider, Scope, Tenant
from tenants.scim import endpoint
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.identity.directory import PATCH, USER, Directory, make_directory

SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
NAMES = ("ada", "Bob", "cleo", "dan", "eve")


def found(directory: Directory, query: str, kind: str = "Users") -> list[str]:
    answer = directory.send("GET", f"{kind}?{query}")
    assert answer.status_code == 200, answer.content
    return [one.get("userName") or one["displayName"] for one in answer.json()["Resources"]]


@pytest.fixture
def five(directory: Directory) -> dict[str, str]:
    """The ids of five people."""
    return {name: directory.add_user(name, displayName=f"The {name}") for name in NAMES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ('filter=userName eq "BOB"', ["Bob"]),
        ('filter=userName eq "b_b"', []),
        ('filter=externalId eq "ada"', ["ada"]),
        ('filter=externalId eq "ADA"', []),
        ('filter=urn:ietf:params:scim:schemas:core:2.0:User:userName eq "eve"', ["eve"]),
        ('filter=userName sw "a" or displayName co "eve"', ["ada", "eve"]),
        ('filter=not (userName sw "a") and active eq true', ["Bob", "cleo", "dan", "eve"]),
        ('filter=groups.display eq "staff"', ["cleo"]),
        (r'filter=userName eq "\u0000"', []),
        (r'filter=externalId eq "\ud800"', []),
        ("filter=displayName pr&sortBy=userName&sortOrder=descending", list(NAMES[::-1])),
        ("startIndex=2&count=2", ["Bob", "cleo"]),
        ("startIndex=9", []),
        ("count=0", []),
        ("startIndex=-5&count=1", ["ada"]),
    ],
)
def test_list_is_filtered_sorted_and_paged(
    query: str, names: list[str], directory: Directory, five: dict[str, str]
) -> None:
    directory.add_group("staff", five["cleo"])
    assert found(directory, query) == names


def test_search_by_post_is_a_list_too(directory: Directory, five: dict[str, str]) -> None:
    directory.add_group("staff", five["ada"])
    body = {"schemas": [SEARCH], "filter": 'userName eq "eve"'}
    one = directory.send("POST", "Users/.search", body).json()["Resources"]
    assert [each["id"] for each in one] == [five["eve"]]
    body["filter"] = 'displayName sw "sta" or userName eq "dan"'
    both = directory.send("POST", ".search", body).json()
    assert {each["meta"]["resourceType"] for each in both["Resources"]} == {"User", "Group"}
    body["filter"] = "not (" * 3_000 + "userName pr" + ")" * 3_000
    assert directory.send("POST", "Groups/.search", body).status_code in (400, 413)


def test_pages_say_how_many_there_are(directory: Directory, five: dict[str, str]) -> None:
    page = directory.send("GET", "Users?count=2&startIndex=4&attributes=userName").json()
    assert {name: page[name] for name in ("totalResults", "startIndex", "itemsPerPage")} == {
        "totalResults": 5,
        "startIndex": 4,
        "itemsPerPage": 2,
    }
    assert page["Resources"][0].keys() == {"schemas", "id", "userName"}
    directory.add_group("staff", five["ada"])
    (group,) = directory.send("GET", "Groups?excludedAttributes=members").json()["Resources"]
    assert "members" not in group


@pytest.mark.parametrize(
    "query",
    [
        "filter=userName eq",
        "filter=userName",
        'filter=nothing eq "x"',
        "filter=((((",
        f'filter=userName eq "{"x" * 3000}"',
        "filter=" + "not (" * 350 + 'userName eq "a"' + ")" * 350,
        "count=many",
        "sortBy=nothing",
        "attributes=userName&excludedAttributes=active",
    ],
    ids=lambda query: query[:30],
)
def test_bad_query_is_refused(query: str, directory: Directory) -> None:
    answer = directory.send("GET", f"Users?{query}")
    assert answer.status_code in (400, 403), answer.content
    assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert answer["Content-Type"] == "application/scim+json"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "7",
        "null",
        '{"userName": NaN}',
        "[" * 100_000,
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        {"schemas": [USER]},
        {"schemas": [USER], "userName": ""},
        {"schemas": [USER], "userName": "   "},
        {"schemas": [USER], "userName": "x" * 201},
        {"schemas": [USER], "userName": "two\nlines"},
        {"schemas": [USER], "userName": {"a": 1}},
        {"schemas": [USER], "userName": "ada", "externalId": "x" * 192},
        {"schemas": [USER], "userName": "ada", "active": "perhaps"},
        {"schemas": [USER], "userName": "ada", "displayName": "x" * 201},
        {"userName": "ada", "schemas": "x"},
    ],
    ids=lambda body: str(body)[:30],
)
def test_bad_body_is_refused_and_nothing_is_stored(body: Any, directory: Directory) -> None:
    answer = directory.send("POST", "Users", body)
    assert answer.status_code == 400, answer.content
    assert answer.json()["status"] == "400"
    assert found(directory, "") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "explode", "path": "active", "value": False},
        {"op": "remove"},
        {"op": "replace", "path": "userName", "value": None},
        {"op": "remove", "path": "userName"},
        {"op": "replace", "path": "((", "value": "x"},
        {"op": "replace", "path": "active", "value": {"a": [1]}},
        {"op": "add", "path": "id", "value": "7"},
        {"op": "replace", "path": "userName", "value": "x" * 201},
        {"op": "replace", "path": "userName", "value": "Bob"},
        7,
    ],
    ids=str,
)
def test_bad_patch_is_refused_as_a_whole(
    operation: Any, directory: Directory, five: dict[str, str]
) -> None:
    good = {"op": "replace", "path": "displayName", "value": "changed"}
    answer = directory.send(
        "PATCH", f"Users/{five['ada']}", {"schemas": [PATCH], "Operations": [good, operation]}
    )
    assert answer.status_code in (400, 409), answer.content
    shown = directory.send("GET", f"Users/{five['ada']}").json()
    assert shown["displayName"] == "The ada"


def test_group_takes_only_people_of_its_directory(
    globex: Cast, directory: Directory, five: dict[str, str]
) -> None:
    stranger = make_directory(globex).add_user("stranger")
    group = directory.add_group("staff", five["ada"], five["ada"])
    for member in (stranger, group, "no id", ""):
        add = {"op": "add", "path": "members", "value": [{"value": member}]}
        assert directory.patch(f"Groups/{group}", add).status_code == 400
    stored = directory.send("GET", f"Groups/{group}").json()
    assert [one["value"] for one in stored["members"]] == [five["ada"]]
    assert directory.send("DELETE", f"Users/{five['ada']}").status_code == 204
    assert "members" not in directory.send("GET", f"Groups/{group}").json()


def test_names_are_unique_whatever_their_case(directory: Directory, five: dict[str, str]) -> None:
    for again in ({"userName": "ADA"}, {"userName": "new", "externalId": "ada"}):
        answer = directory.send("POST", "Users", {"schemas": [USER], **again})
        assert (answer.status_code, answer.json()["scimType"]) == (409, "uniqueness")
    body = {"schemas": [USER], "userName": "bob", "externalId": "Bob"}
    assert directory.send("PUT", f"Users/{five['Bob']}", body).status_code == 200


def test_other_attributes_are_accepted_and_not_kept(directory: Directory) -> None:
    """What Entra ID and Okta send."""
    named = {"name": {"givenName": "Ada", "familyName": "Lovelace"}}
    ada = directory.add_user(
        "ada",
        emails=[{"value": "ada@acme.example", "type": "work", "primary": True}],
        password="secret",
        **{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "X"}},
        **named,
    )
    answer = directory.patch(
        f"Users/{ada}",
        {"op": "Replace", "path": "name.familyName", "value": "King"},
        {"op": "Add", "path": 'emails[type eq "work"].value', "value": "a@acme.example"},
        {"op": "Replace", "value": {"displayName": "Ada King", "title": "Countess"}},
    )
    assert answer.status_code == 200, answer.content
    shown = answer.json()
    assert shown.keys() == {
        *("schemas", "id", "externalId", "meta", "userName", "displayName", "active")
    }
    assert shown["displayName"] == "Ada King"
    assert "secret" not in json.dumps(shown)
    users = DirectoryUser.objects
    with tenant_scope(directory.row.tenant_id):
        stored = str(users.filter(tenant_id=directory.row.tenant_id).values().get())
    assert "acme.example" not in stored
    assert "Lovelace" not in stored


def test_version_decides_about_a_change(directory: Directory, five: dict[str, str]) -> None:
    path = f"Users/{five['ada']}"
    shown = directory.send("GET", path)
    version = shown["ETag"]
    assert shown.json()["meta"]["version"] == version
    assert directory.send("GET", path, **{"If-None-Match": version}).status_code == 304
    change = {"op": "replace", "path": "displayName", "value": "changed"}
    stale = {"If-Match": 'W/"another"'}
    assert directory.patch(path, change, **stale).status_code == 412
    assert directory.send("DELETE", path, **stale).status_code == 412
    changed = directory.patch(path, change, **{"If-Match": version})
    assert (changed.status_code, changed.json()["displayName"]) == (200, "changed")
    assert changed["ETag"] != version
    assert directory.patch(path, change, **{"If-Match": version}).status_code == 412
    directory.add_group("staff", five["ada"])
    assert directory.send("GET", path)["ETag"] != changed["ETag"]


def test_same_change_again_is_no_entry(directory: Directory, five: dict[str, str]) -> None:
    off = {"op": "replace", "path": "active", "value": False}
    first = directory.patch(f"Users/{five['ada']}", off).json()
    assert directory.patch(f"Users/{five['ada']}", off).json() == first


def test_only_its_own_key_opens_a_directory(acme: Cast, globex: Cast, directory: Directory) -> None:
    tenant, row = acme.tenant, directory.row
    others = [scope for scope in Scope if scope is not Scope.SCIM]
    with tenant_scope(tenant.pk):
        reader = create_key(tenant, "all others", others)[1]
        second = create_key(tenant, "second", [Scope.SCIM])[1]
    foreign = make_directory(globex)
    cases: dict[str, tuple[Directory, int]] = {
        "another scope": (Directory(row, reader), 403),
        "no key": (Directory(row, ""), 401),
        "another tenant": (Directory(row, foreign.key), 404),
        "second": (Directory(row, second), 200),
    }
    for what, (one, status) in cases.items():
        answer = one.send("GET", "Users")
        assert answer.status_code == status, what
        assert answer.json()["schemas"][0].endswith((":Error", ":ListResponse"))
    with tenant_scope(tenant.pk):
        key = ApiKey.objects.get(tenant=tenant, name="second")
        end_key(tenant, acme.admin, key)
    assert Directory(row, second).send("GET", "Users").status_code == 401
    Tenant.objects.filter(pk=tenant.pk).update(suspended_at=row.created_at)
    assert directory.send("GET", "Users").status_code == 403


def test_directory_is_there_only_if_an_admin_wants_it(acme: Cast, directory: Directory) -> None:
    row = directory.row
    ada = directory.add_user("ada")
    with tenant_scope(acme.tenant.pk):
        switch_provider(acme.tenant, acme.admin, row, is_on=False)
    assert directory.send("DELETE", f"Users/{ada}").status_code == 204, "an end still counts"
    with tenant_scope(acme.tenant.pk):
        settings = {name: value for name, value in row.settings.items() if name != "scim"}
        IdentityProvider.objects.filter(pk=row.pk, tenant=acme.tenant).update(settings=settings)
    assert directory.send("GET", "Users").status_code == 404


def test_key_may_not_ask_too_often(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_QUOTA", Quota(0.01))  # the bucket is empty after one request
    assert directory.send("GET", "Users").status_code == 200
    answer = directory.send("GET", "Users")
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) >= 1


def test_body_has_a_limit(directory: Directory) -> None:
    body = {"schemas": [USER], "userName": "ada", "nickName": "x" * 1_100_000}
    assert directory.send("POST", "Users", body).status_code == 413


def test_service_describes_itself(directory: Directory) -> None:
    config = directory.send("GET", "ServiceProviderConfig").json()
    assert config["patch"]["supported"] is True
    assert config["etag"]["supported"] is True
    schema = directory.send("GET", f"Schemas/{USER}").json()
    assert {one["name"] for one in schema["attributes"]} == {
        *("userName", "displayName", "active", "groups")
    }
    assert directory.send("GET", "Schemas?filter=x").status_code == 403
    assert directory.send("POST", "Schemas", {}).status_code == 405
    assert directory.send("GET", "Me").status_code == 404
    assert directory.send("HEAD", "Users").content == b""
