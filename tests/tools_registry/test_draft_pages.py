"""A draft's pages: written by editors, without overwriting others, validated while typing."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tenants.models import User
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft, find_draft, publish, save_draft
from tools_registry.models import Tool, ToolDraft, ToolVersion
from tools_registry.schemas import ToolContract
from tools_registry.tools import create_tool
from tools_registry.versions import publish_version

CONTRACT = make_contract()
TYPED = {
    "revision": "1",
    "description": "Tells the weather.",
    "input_schema": json.dumps(CONTRACT["input_schema"]),
    "output_schema": json.dumps(CONTRACT["output_schema"]),
    "on_collision": "throw",
    "meta": "{}",
}


def contract(**overrides: Any) -> ToolContract:
    return ToolContract.model_validate(make_contract(**overrides))


@pytest.fixture
def tool(acme: Cast) -> Tool:
    """With one version."""
    with tenant_scope(acme.tenant.id):
        tool = create_tool(acme.tenant, "get_weather", Publisher(acme.editor))
        publish_version(tool, contract(), Publisher(acme.editor))
        return tool


@pytest.fixture
def drafted(acme: Cast, tool: Tool) -> Tool:
    """With a draft of that."""
    with tenant_scope(acme.tenant.id):
        create_draft(tool, contract(), Publisher(acme.editor))
    return tool


def client(user: User) -> Client:
    one = Client()
    one.force_login(user)
    return one


def draft_of(cast: Cast, tool: Tool) -> ToolDraft | None:
    with tenant_scope(cast.tenant.id):
        return find_draft(tool)


def field(page: str, name: str) -> str:
    match = re.search(rf'<textarea[^>]*name="{name}"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
    assert match is not None
    return unescape(match[1])


def test_draft_begins_as_a_copy_of_the_current_version(acme: Cast, tool: Tool) -> None:
    editor = client(acme.editor)
    address = f"/tools/{tool.pk}/draft"
    assert "starts as a copy of version 1" in editor.get(address).content.decode()
    answer = editor.post(f"{address}/begin")
    assert (answer.status_code, answer.headers["Location"]) == (302, address)
    page = editor.get(address).content.decode()
    assert json.loads(field(page, "output_schema")) == CONTRACT["output_schema"]
    again = editor.post(f"{address}/begin", follow=True).content.decode()
    assert "This tool already has a draft" in again


def test_draft_begins_as_an_old_version_or_empty(acme: Cast, tool: Tool) -> None:
    by = Publisher(acme.editor)
    with tenant_scope(acme.tenant.id):
        publish_version(tool, contract(description="The second."), by)
        bare = create_tool(acme.tenant, "bare", by)
    editor = client(acme.editor)
    assert editor.post(f"/tools/{tool.pk}/draft/begin", {"number": "9"}).status_code == 404
    editor.post(f"/tools/{tool.pk}/draft/begin", {"number": "1"})
    draft = draft_of(acme, tool)
    assert draft is not None
    assert (draft.base_number, draft.description) == (1, "Tells the weather.")
    editor.post(f"/tools/{bare.pk}/draft/begin")
    draft = draft_of(acme, bare)
    assert draft is not None
    assert (draft.base_number, draft.input_schema) == (0, {"type": "object", "properties": {}})


def test_draft_is_saved_as_typed(acme: Cast, drafted: Tool) -> None:
    typed = TYPED | {
        "description": "Two\r\nlines.",
        "output_schema": "",
        "trusted": "on",
        "on_collision": "replace",
        "meta": '{"b": 1, "a": 2}',
    }
    answer = client(acme.editor).post(f"/tools/{drafted.pk}/draft", typed)
    assert answer.status_code == 302
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert (draft.revision, draft.description, draft.output_schema) == (2, "Two\nlines.", None)
    assert (draft.trusted, draft.ephemeral, draft.on_collision) == (True, False, "replace")
    assert list(draft.meta) == ["b", "a"], "in the order they were written"


def test_invalid_draft_is_shown_again_as_typed(acme: Cast, drafted: Tool) -> None:
    typed = TYPED | {"output_schema": '{"type": "objekt"}', "input_schema": "{<b>oops"}
    answer = client(acme.editor).post(f"/tools/{drafted.pk}/draft", typed)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert field(page, "input_schema") == "{<b>oops"
    assert field(page, "output_schema") == '{"type": "objekt"}'
    assert "at /type" in page
    assert "<b>oops" not in page
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert draft.revision == 1


def test_second_save_shows_both_texts_and_overwrites_nothing(acme: Cast, drafted: Tool) -> None:
    editor, admin = client(acme.editor), client(acme.admin)
    address = f"/tools/{drafted.pk}/draft"
    admin.post(address, TYPED | {"description": "The admin's <i>words</i>.", "trusted": "on"})
    answer = editor.post(address, TYPED | {"description": "The editor's words."})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert field(page, "description") == "The editor's words."
    other_texts = re.findall(r"readonly[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert [unescape(text) for text in other_texts] == ["The admin's <i>words</i>.", "yes"]
    assert acme.admin.username in page
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert (draft.revision, draft.description) == (2, "The admin's <i>words</i>.")

    revision = re.search(r'name="revision" value="(\d+)"', page)
    assert revision is not None
    assert "Overwrite revision 2" in page
    again = TYPED | {"description": "Both.", "revision": revision[1]}
    assert editor.post(address, again).status_code == 302
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert (draft.revision, draft.description) == (3, "Both.")


def test_draft_published_meanwhile_is_started_again(acme: Cast, drafted: Tool) -> None:
    by = Publisher(acme.admin)
    with tenant_scope(acme.tenant.id):
        draft = find_draft(drafted)
        assert draft is not None
        save_draft(draft, contract(description="Another."), by, expected_revision=1)
        publish(draft, by, expected_revision=2, newly_violating=0)
    editor = client(acme.editor)
    answer = editor.post(f"/tools/{drafted.pk}/draft", TYPED | {"description": "Mine."})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "published or discarded" in page
    assert field(page, "description") == "Mine."
    again = TYPED | {"description": "Mine.", "revision": "0"}
    assert editor.post(f"/tools/{drafted.pk}/draft", again).status_code == 302
    began = draft_of(acme, drafted)
    assert began is not None
    assert (began.description, began.base_number) == ("Mine.", 2)
    late = editor.post(f"/tools/{drafted.pk}/draft", again | {"description": "Late."})
    assert late.status_code == 409, "two begin at once: one of them has"


def test_check_stores_nothing(acme: Cast, drafted: Tool) -> None:
    editor = client(acme.editor)
    typed = TYPED | {"description": "Later.", "output_examples": '{"kelvin": 1}\n---\n{oops'}
    fragment = editor.post(f"/tools/{drafted.pk}/draft/check", typed).content.decode()
    assert "<html" not in fragment
    for text in ("Valid contract", "MISSING_REQUIRED", "$.celsius", "not valid JSON"):
        assert text in fragment
    page = editor.post(f"/tools/{drafted.pk}/draft", typed | {"check": "1"}).content.decode()
    assert "MISSING_REQUIRED" in page, "without a script, too"
    assert field(page, "output_examples") == '{"kelvin": 1}\n---\n{oops'
    wrong = TYPED | {"output_schema": '{"required": "x"}'}
    fragment = editor.post(f"/tools/{drafted.pk}/draft/check", wrong).content.decode()
    assert 'data-member="output_schema" data-pointer="/required"' in fragment
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert (draft.revision, draft.description) == (1, "Tells the weather.")


def test_check_shortens_messages_that_quote_a_large_schema(acme: Cast, drafted: Tool) -> None:
    schema = {"items": {"enum": [f"option {number}" for number in range(3_000)]}}
    typed = TYPED | {"output_schema": json.dumps(schema), "output_examples": '["a", "b"]'}
    fragment = client(acme.editor).post(f"/tools/{drafted.pk}/draft/check", typed).content.decode()
    assert fragment.count("ENUM_MISMATCH") == 2
    assert "option 5," in fragment
    assert len(fragment) < 4_000


def test_draft_is_discarded_only_in_the_displayed_revision(acme: Cast, drafted: Tool) -> None:
    editor = client(acme.editor)
    address = f"/tools/{drafted.pk}/draft/discard"
    answer = editor.post(address, {"revision": "7"}, follow=True)
    assert "The draft has changed since you opened it" in answer.content.decode()
    assert draft_of(acme, drafted) is not None
    editor.post(address, {"revision": "1", "reason": "No use."})
    assert draft_of(acme, drafted) is None
    assert "the tool has no draft" in editor.post(address, follow=True).content.decode()


def test_review_saves_typed_changes_only(acme: Cast, drafted: Tool) -> None:
    editor = client(acme.editor)
    address = f"/tools/{drafted.pk}/draft"
    answer = editor.post(address, TYPED | {"description": "New words.", "review": "1"})
    assert answer["Location"] == f"{address}/review"
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert (draft.revision, draft.description) == (2, "New words.")
    typed = TYPED | {"revision": "2", "description": "New words.", "review": "1"}
    assert editor.post(address, typed)["Location"] == f"{address}/review"
    draft = draft_of(acme, drafted)
    assert draft is not None
    assert draft.revision == 2  # its replay stays valid
    broken = editor.post(address, typed | {"input_schema": "{ broken"})
    assert broken.status_code == 200
    assert "{ broken" in unescape(broken.content.decode())
    assert "data-unsaved" in broken.content.decode()


def test_drafts_require_the_editor_role(acme: Cast, globex: Cast, drafted: Tool) -> None:
    for user, status in ((acme.viewer, 403), (acme.auditor, 403), (globex.admin, 404)):
        one = client(user)
        for action in ("", "/begin", "/check", "/discard"):
            assert one.post(f"/tools/{drafted.pk}/draft{action}", TYPED).status_code == status
        assert one.get(f"/tools/{drafted.pk}/draft").status_code == status
    with tenant_scope(acme.tenant.id):
        assert ToolVersion.objects.filter(tool=drafted).count() == 1
