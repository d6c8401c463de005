"""The registry's pages: the list, a tool, a version, and the link from a call."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit.pages.tools import tool_list as views
from tenants.models import User
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tests.support.registered_tools import register_tool


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def client(acme: Cast) -> Client:
    return _client(acme.viewer)


def _get(client: Client, name: str, *args: Any, **query: Any) -> str:
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_list_shows_the_current_version_of_each_tool(acme: Cast, client: Client) -> None:
    register_tool(acme, description="The first.")
    register_tool(acme, description="The second.", on_collision="replace")
    page = _get(client, "tool_list")
    assert "The second." in page
    assert "The first." not in page


def test_empty_registry_is_explained(acme: Cast, client: Client) -> None:
    assert "No tools registered" in _get(client, "tool_list")


def test_list_continues_after_a_name(
    acme: Cast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "PAGE_SIZE", 2)
    for name in ("a b&c", "d", "e"):
        register_tool(acme, name=name)
    first = _get(client, "tool_list")
    assert 'href="?after=d"' in first
    assert ">e</a>" not in first
    assert ">e</a>" in _get(client, "tool_list", after="d")
    assert "First page" in _get(client, "tool_list", after="\x00zzz")


def test_list_uses_the_same_number_of_queries_for_one_and_ten_tools(
    acme: Cast, client: Client
) -> None:
    counts = []
    for wanted in (1, 10):
        for number in range(wanted):
            register_tool(acme, name=f"tool {number}")
        with CaptureQueriesContext(connection) as queries:
            _get(client, "tool_list")
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_tool_page_shows_the_contract(acme: Cast, client: Client) -> None:
    tool = register_tool(
        acme, output_schema={"required": ["celsius"]}, trusted=True, meta={"team": "maps"}
    )
    page = _get(client, "tool_detail", tool.pk)
    for shown in (
        "Tells the weather.",
        "celsius",
        "used without confirmation",
        "maps",
        "sha256:",
        "version 1",
    ):
        assert shown in page


def test_older_version_is_readable_and_marked(acme: Cast, client: Client) -> None:
    register_tool(acme, description="The first.")
    tool = register_tool(acme, description="The second.", on_collision="replace")
    page = _get(client, "tool_version", tool.pk, 1)
    assert "The first." in page
    assert "(not current)" in page
    assert "The second." in _get(client, "tool_detail", tool.pk)


def test_tool_without_an_output_schema_is_marked_as_unchecked(acme: Cast, client: Client) -> None:
    tool = register_tool(acme, output_schema=None)
    assert "Outputs are not validated" in _get(client, "tool_detail", tool.pk)


def test_edit_link_is_shown_only_to_editors(acme: Cast) -> None:
    tool = register_tool(acme)
    acme.editor.is_staff = acme.viewer.is_staff = True
    acme.editor.save()
    acme.viewer.save()
    assert "Edit in admin" in _get(_client(acme.editor), "tool_detail", tool.pk)
    for user in (acme.viewer, acme.auditor):
        assert "Edit in admin" not in _get(_client(user), "tool_detail", tool.pk)


def test_hostile_text_is_escaped(acme: Cast, client: Client) -> None:
    hostile = "</pre><script>alert(1)</script>"
    tool = register_tool(
        acme,
        name=hostile,
        description=hostile,
        input_schema={"description": hostile, hostile: hostile},
        meta={hostile: hostile},
    )
    for page in (_get(client, "tool_list"), _get(client, "tool_detail", tool.pk)):
        assert "<script>alert" not in page


def test_call_version_resolves_by_number_or_digest(acme: Cast, client: Client) -> None:
    first = make_contract(description="a")
    register_tool(acme, description="a")
    tool = register_tool(acme, description="b", on_collision="replace")
    for version, number in ((first["digest"], 1), ("1", 1), ("2", 2)):
        answer = client.get(reverse("tool_find"), {"name": tool.name, "version": version})
        assert answer["Location"] == reverse("tool_version", args=[tool.pk, number])
    for version in ("", "7", "sha256:none", "9" * 40, "\x00", "¹"):
        answer = client.get(reverse("tool_find"), {"name": tool.name, "version": version})
        assert answer["Location"] == reverse("tool_detail", args=[tool.pk])
    answer = client.get(reverse("tool_find"), {"name": tool.name, "version": "4"}, follow=True)
    assert "Version 4 is not registered. Showing the current version, 2" in answer.content.decode()
    hostile = {"name": tool.name, "version": "<script>alert(1)"}
    answer = client.get(reverse("tool_find"), hostile, follow=True)
    assert "<script>alert" not in answer.content.decode()


def test_missing_tool_or_version_gets_404(acme: Cast, globex: Cast, client: Client) -> None:
    foreign = register_tool(globex)
    ours = register_tool(acme, name="ours")
    for path in (
        reverse("tool_detail", args=[foreign.pk]),
        reverse("tool_version", args=[foreign.pk, 1]),
        reverse("tool_detail", args=[uuid.uuid4()]),
        reverse("tool_version", args=[ours.pk, 2]),
        reverse("tool_version", args=[ours.pk, 10**30]),
        reverse("tool_find") + "?name=get_weather",
        "/tools/not-a-uuid",
    ):
        assert client.get(path).status_code == 404, path
    assert "get_weather" not in _get(client, "tool_list")


def test_anonymous_user_is_redirected_to_sign_in(acme: Cast) -> None:
    tool = register_tool(acme)
    for path in (reverse("tool_list"), reverse("tool_detail", args=[tool.pk])):
        assert Client().get(path).status_code == 302
