"""Boards: who sees and changes which, what a form and the API save, and what a page costs."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import Board
from audit.queries.boards import BOARDS_MAX, PANELS_MAX, QUERIES_MAX
from tenants.models import Scope, User
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import FRAME, HOSTILE, signed_in, statements, text

FAILED = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {"took_ms": 1}}
NOW = datetime.now(UTC)


def make(user: User, name: str, **more: str) -> UUID:
    """A new board, and its id from the address of its form."""
    answer = signed_in(user).post("/boards/new", {"name": name, "range": "24h", **more})
    assert answer.status_code == 302, text(answer.content.decode())
    return UUID(answer["Location"].split("/")[2])


def said(*panels: dict[str, Any], **more: str) -> dict[str, Any]:
    """The fields of a board's form with these panels."""
    fields: dict[str, Any] = {"name": "Mine", "range": "24h", **more}
    fields |= {"form-TOTAL_FORMS": str(len(panels)), "form-INITIAL_FORMS": "0"}
    for number, panel in enumerate(panels):
        usual = {"size": "half", "ORDER": str(number + 1)}
        fields |= {f"form-{number}-{name}": value for name, value in (usual | panel).items()}
    return fields


def stored(cast: Cast) -> list[Board]:
    with tenant_scope(cast.tenant.id):
        return list(Board.objects.for_tenant(cast.tenant.id).order_by("name"))


def test_a_private_board_is_seen_by_its_user_only(acme: Cast) -> None:
    pk = make(acme.viewer, "Mine")
    assert "Mine" in text(signed_in(acme.viewer).get("/boards/").content.decode())
    assert signed_in(acme.viewer).get(f"/boards/{pk}").status_code == 200
    for other in (acme.admin, acme.editor):
        client = signed_in(other)
        assert "Mine" not in text(client.get("/boards/").content.decode())
        for address in (f"/boards/{pk}", f"/boards/{pk}/edit"):
            assert client.get(address).status_code == 404
        assert client.post(f"/boards/{pk}/delete").status_code == 404
    assert signed_in(acme.viewer).post(f"/boards/{pk}/delete").status_code == 302
    assert stored(acme) == []


def test_a_shared_board_is_seen_by_all_and_changed_by_editors(acme: Cast, globex: Cast) -> None:
    pk = make(acme.editor, "Ours", is_shared="on")
    viewer = signed_in(acme.viewer)
    assert viewer.get(f"/boards/{pk}").status_code == 200
    assert viewer.get(f"/boards/{pk}/edit").status_code == 403
    assert viewer.post(f"/boards/{pk}/delete").status_code == 403
    changed = said({"shows": "errors"}, name="Ours", is_shared="on")
    assert signed_in(acme.admin).post(f"/boards/{pk}/edit", changed).status_code == 302
    (board,) = stored(acme)
    assert board.user_id is None
    assert board.changed_by == acme.admin.get_username()
    assert signed_in(globex.admin).get(f"/boards/{pk}").status_code == 404


def test_a_viewer_cannot_share(acme: Cast) -> None:
    pk = make(acme.viewer, "Mine", is_shared="on")
    (board,) = stored(acme)
    assert board.user_id == acme.viewer.pk
    changed = said({"shows": "errors"}, is_shared="on")
    assert signed_in(acme.viewer).post(f"/boards/{pk}/edit", changed).status_code == 302
    assert stored(acme)[0].user_id == acme.viewer.pk
    assert signed_in(acme.admin).get(f"/boards/{pk}").status_code == 404


def test_panels_are_stored_in_their_order_and_empty_ones_are_left_out(acme: Cast) -> None:
    pk = make(acme.viewer, "Mine")
    panels = (
        {"shows": "list", "title": "Failed", "q": "state:failed", "ORDER": "3"},
        {"shows": "", "title": "nothing"},
        {"shows": "latency", "size": "wide", "threshold": "2 s", "ORDER": "1"},
        {"shows": "errors", "ORDER": ""},
    )
    assert signed_in(acme.viewer).post(f"/boards/{pk}/edit", said(*panels)).status_code == 302
    (board,) = stored(acme)
    usual = {"title": "", "q": "", "size": "half", "threshold": ""}
    assert board.panels == [
        usual | {"shows": "latency", "size": "wide", "threshold": "2 s"},
        usual | {"shows": "list", "title": "Failed", "q": "state:failed"},
        usual | {"shows": "errors"},
    ]


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ({"shows": "errors", "q": "state:eror"}, "Panel 1: "),
        ({"shows": "errors", "q": "since:1h"}, "leave out since and until"),
        ({"shows": "errors", "q": "args.city:London"}, "Panel 1: "),
        ({"shows": "errors", "threshold": "2 s"}, "a percentage such as 5 %"),
        ({"shows": "latency", "threshold": "5 %"}, "a duration such as 2 s"),
        ({"shows": "list", "threshold": "5"}, "a list has no threshold"),
    ],
)
def test_an_invalid_panel_is_refused_and_nothing_is_lost(
    acme: Cast, panel: dict[str, str], message: str
) -> None:
    pk = make(acme.viewer, "Mine")
    before = stored(acme)[0].panels
    answer = signed_in(acme.viewer).post(f"/boards/{pk}/edit", said(panel))
    assert answer.status_code == 422
    page = answer.content.decode()
    assert message in text(page)
    assert all(f'value="{value}"' in page for name, value in panel.items() if name != "shows")
    assert stored(acme)[0].panels == before


@pytest.mark.slow
def test_names_and_numbers_of_boards_are_limited(acme: Cast) -> None:
    make(acme.viewer, "Mine")
    answer = signed_in(acme.viewer).post("/boards/new", {"name": "Mine", "range": "24h"})
    assert answer.status_code == 422
    assert "Another board has this name" in text(answer.content.decode())
    make(acme.editor, "Mine")  # of another user
    for number in range(BOARDS_MAX - 1):
        make(acme.viewer, f"Board {number}")
    answer = signed_in(acme.viewer).post("/boards/new", {"name": "More", "range": "24h"})
    assert "boards already" in text(answer.content.decode())


def test_charts_count_the_calls_of_their_query(acme: Cast) -> None:
    calls = [make_call(tool_name="a", started_at=NOW - timedelta(hours=3)) for _ in range(4)]
    calls += [make_call(tool_name="a", started_at=NOW - timedelta(hours=2), output=FAILED)]
    calls += [make_call(tool_name="b", started_at=NOW - timedelta(hours=2)) for _ in range(2)]
    send_events(acme.tenant, [event for call in calls for event in call])
    pk = make(acme.viewer, "Mine")
    panels = (
        {"shows": "calls"},
        {"shows": "calls", "title": "Of a", "q": "tool:a"},
        {"shows": "list", "title": "Failed", "q": "state:failed"},
    )
    signed_in(acme.viewer).post(f"/boards/{pk}/edit", said(*panels))
    page = signed_in(acme.viewer).get(f"/boards/{pk}").content.decode()
    tables = page.split("<figure")[1:]
    counted = [sum(map(int, re.findall(r'<td class="r">(?:<a [^>]*>)?(\d+)', t))) for t in tables]
    assert counted == [7, 5]
    assert "tool%3Aa+state%3Afailed" in tables[1]
    failed = page.partition("Failed</span>")[2]
    assert failed.count("<li>") == 1


def test_a_board_opens_with_its_range_and_thresholds(acme: Cast) -> None:
    send_events(acme.tenant, make_call(output=FAILED, started_at=NOW - timedelta(minutes=5)))
    pk = make(acme.viewer, "Mine")
    form = said({"shows": "errors", "threshold": "5 %"}, range="7d")
    signed_in(acme.viewer).post(f"/boards/{pk}/edit", form)
    page = signed_in(acme.viewer).get(f"/boards/{pk}").content.decode()
    assert '"name": "Threshold 5.00\\u00a0%"' in page
    assert "per 6 hours" in page
    other = signed_in(acme.viewer).get(f"/boards/{pk}?range=1h&line-panel-0=50 %25")
    assert "Threshold 50.0\\u00a0%" in other.content.decode()
    assert "per minute" in other.content.decode()


def test_a_full_board_has_a_bounded_number_of_statements(acme: Cast) -> None:
    calls = [make_call(tool_name=f"tool-{n % 8}") for n in range(200)]
    send_events(acme.tenant, [event for call in calls for event in call])
    pk = make(acme.viewer, "Mine")
    queries = [f"tool:tool-{n}" for n in range(QUERIES_MAX)]
    charts = [{"shows": "calls", "q": queries[n % QUERIES_MAX]} for n in range(PANELS_MAX - 2)]
    full = said(*charts, {"shows": "latency"}, {"shows": "errors"})
    assert signed_in(acme.viewer).post(f"/boards/{pk}/edit", full).status_code == 302
    client = signed_in(acme.viewer)
    client.get(f"/boards/{pk}")
    # The board; figures (2), whether there are some before, alerts, versions; each query once.
    with statements(FRAME + 1 + 5 + QUERIES_MAX):
        client.get(f"/boards/{pk}")
    lists = [{"shows": "list", "q": queries[n % QUERIES_MAX]} for n in range(PANELS_MAX)]
    assert client.post(f"/boards/{pk}/edit", said(*lists)).status_code == 302
    with CaptureQueriesContext(connection) as captured:
        client.get(f"/boards/{pk}")
    assert len(captured) <= FRAME + 2 + 3 * PANELS_MAX


def test_too_many_queries_are_refused(acme: Cast) -> None:
    pk = make(acme.viewer, "Mine")
    panels = [{"shows": "calls", "q": f"tool:t{n}"} for n in range(QUERIES_MAX + 1)]
    answer = signed_in(acme.viewer).post(f"/boards/{pk}/edit", said(*panels))
    assert answer.status_code == 422
    assert f"at most {QUERIES_MAX} different queries" in text(answer.content.decode())


@pytest.mark.slow
def test_hostile_texts_are_texts(acme: Cast) -> None:
    for number, hostile in enumerate(HOSTILE):
        name = f"{hostile}{number}".replace("\0", "")
        pk = make(acme.viewer, name)
        title = hostile.replace("\0", "")  # a form refuses it
        form = said({"shows": "calls", "title": title, "q": f'"{number} <b>x"'}, name=name)
        assert signed_in(acme.viewer).post(f"/boards/{pk}/edit", form).status_code == 302
        for address in ("/boards/", f"/boards/{pk}", f"/boards/{pk}/edit", "/palette?text="):
            page = signed_in(acme.viewer).get(address).content.decode()
            assert "<script>alert" not in page
            assert "<img src=x" not in page


def test_api_and_page_have_the_same_boards(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        api = program(acme.tenant, Scope.READ, Scope.OPERATE)
    made = api.do("boards", {"name": "Ours", "panels": [{"shows": "errors", "threshold": "5 %"}]})
    assert made["is_shared"] is True
    assert "Ours" in text(signed_in(acme.viewer).get("/boards/").content.decode())
    assert api.get("boards")["items"] == [api.get(f"boards/{made['id']}")] == [made]
    changed = api.do(f"boards/{made['id']}", {"name": "Other", "range": "7d"}, "PUT")
    assert (changed["name"], changed["range"], changed["panels"]) == ("Other", "7d", [])
    assert api.refused("boards", {"name": "Other"}) == (409, "conflict")
    assert api.refused("boards", {"name": "Mine", "is_shared": False}) == (409, "no_owner")
    wrong = {"name": "x", "panels": [{"shows": "errors", "threshold": "2 s"}]}
    assert api.refused("boards", wrong) == (422, "invalid")
    assert api.do(f"boards/{made['id']}", None, "DELETE")["name"] == "Other"
    assert api.refused(f"boards/{made['id']}", None, "DELETE") == (404, "not_found")
    assert stored(acme) == []


def test_a_key_reaches_the_private_boards_of_its_owner_only(acme: Cast) -> None:
    pk = make(acme.viewer, "Mine")
    with tenant_scope(acme.tenant.id):
        own = program(acme.tenant, Scope.READ, Scope.OPERATE, owner=acme.viewer)
        other = program(acme.tenant, Scope.READ, Scope.OPERATE, owner=acme.editor, name="other")
    assert [one["name"] for one in own.get("boards")["items"]] == ["Mine"]
    assert other.get("boards")["items"] == []
    assert other.refused(f"boards/{pk}", {"name": "x"}, "PUT") == (404, "not_found")
    own.do(f"boards/{pk}", {"name": "Still mine", "is_shared": False}, "PUT")
    assert stored(acme)[0].user_id == acme.viewer.pk
