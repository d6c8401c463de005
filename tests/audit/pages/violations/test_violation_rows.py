"""The rows of the violations page as HTML. Without a database."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.template import Context
from django.test import RequestFactory

from audit.models import Note
from audit.pages.violations.views import Cell, HeatMap, HeatRow, KindRow
from audit.queries.violations import ViolationKind
from audit.templatetags.violations import heat_rows, kind_rows

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
KIND = ViolationKind(
    side="results",
    tool_name="search",
    tool_version="2",
    path_pattern="$.a[*]",
    code="WRONG_TYPE",
    violations=3,
    calls=2,
    of_calls=200,
    first_at=AT,
    last_at=AT,
    first_ever_at=AT,
    course=[0, 3],
)
NOTE = Note(id=UUID(int=7), label="<b>", state="known")


def shown(
    kind: ViolationKind, *, apart: str = "", notes: int = 0, is_shared: bool = False, **more: bool
) -> str:
    request = RequestFactory().get("/violations/?range=7d&sort=code")
    if is_shared:
        request.share = object()  # type: ignore[attr-defined]
    rows = [KindRow(kind, "/calls/?q=a&b", apart, [NOTE] * notes)]
    return kind_rows(Context({"request": request, "rows": rows, "both_sides": True} | more))


def test_a_kind_links_to_itself_to_its_calls_and_to_what_sets_them_apart() -> None:
    row = shown(KIND, apart="/apart/?range=7d&q=x")
    own = "/violations/?range=7d&amp;side=results&amp;tool=search&amp;path=%24.a%5B%2A%5D"
    own += "&amp;code=WRONG_TYPE"
    links = ["/calls/?q=a&amp;b", "/apart/?range=7d&amp;q=x"]
    assert re.findall(r' href="([^"]*)"', row) == [own, *links]
    assert re.findall(r'hx-get="([^"]*)"', row) == [own]
    assert "compare" not in shown(KIND)


def test_text_of_agents_is_escaped() -> None:
    hostile = '"><script>\u202e'
    named = replace(
        KIND, tool_name=hostile, tool_version=hostile, path_pattern=hostile, code=hostile
    )
    row = shown(named)
    assert "<script>" not in row and "\u202e" not in row
    assert row.count("&quot;&gt;&lt;script&gt;") == 7  # four texts, three of them with a title


def test_a_tiny_share_is_escaped() -> None:
    row = shown(replace(KIND, calls=1, of_calls=100_000))
    assert 'data-label="Share">&lt;' in row


@pytest.mark.parametrize(
    ("version", "new_since", "said"),
    [("2", None, ""), ("2", "2", ">new<"), ("2", "1", ">since v1<"), ("", "", ">new<")],
)
def test_a_kind_says_which_version_introduced_it(
    version: str, new_since: str | None, said: str
) -> None:
    row = shown(replace(KIND, tool_version=version, new_since=new_since))
    assert re.findall(r">new<|>since [^<]*<", row) == ([said] if said else [])
    assert ("—" in row) == (not version)


def test_the_side_is_a_column_only_beside_the_other_side() -> None:
    assert 'data-label="Side">results<' in shown(KIND)
    assert "Side" not in shown(KIND, both_sides=False)


def test_three_notes_are_marked_and_none_on_a_shared_page() -> None:
    row = shown(KIND, notes=4)
    assert row.count(f'href="/notes/{NOTE.id}" title="Note: known">&lt;b&gt;</a>') == 3
    assert "Note:" not in shown(KIND, notes=4, is_shared=True)


def test_cells_without_violations_have_no_link_and_text_of_agents_is_escaped() -> None:
    cells = [Cell("<i>", "A_B", 1200, 8, "?tool=%3Ci%3E&code=A_B"), Cell("<i>", "C", 0, 0, "?no")]
    row = heat_rows(HeatMap(["A_B", "C"], [HeatRow("<i>", "?tool=%3Ci%3E", cells)]))
    opens = 'href="?tool=%3Ci%3E&amp;code=A_B" hx-get="?tool=%3Ci%3E&amp;code=A_B"'
    assert f'<a {opens} title="1,200 violations: &lt;i&gt;, A_B">1.2\N{NO-BREAK SPACE}k</a>' in row
    assert '<td class="shade-0"></td>' in row and "?no" not in row
    assert 'title="&lt;i&gt;">&lt;i&gt;</a></th>' in row and "<i>" not in row
