"""JSON as HTML: exact, escaped, shortened, and with violations at their place."""

import html
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.events.json_values import parse
from audit.show.json_tree import Mark, draw, inline
from audit.show.text import visible

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=30,
)


def text(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def lines(value: Any, **marks: Mark) -> list[str]:
    by_path = {path.replace("__", "."): (mark,) for path, mark in marks.items()}
    return text(draw(parse(json.dumps(value).encode()), by_path).html).split("\n")


def test_short_objects_stay_on_one_line_and_long_ones_are_expanded() -> None:
    assert lines({"city": "London", "n": 2}) == ['{ "city": "London", "n": 2 }']
    assert lines({"a": {"b": [1, {"c": None}]}, "d": []}) == [
        "{",
        '  "a": {',
        '    "b": [',
        "      1,",
        '      { "c": null }',
        "    ]",
        "  },",
        '  "d": []',
        "}",
    ]


def test_numbers_are_shown_as_received() -> None:
    assert text(draw(parse(b"[72.50, 1e400, NaN, -0]")).html) == "[72.50, 1e400, NaN, -0]"
    assert text(draw(parse(b"1" * 5_000)).html).startswith("1111")


def test_violation_is_marked_at_its_value_with_the_coerced_value() -> None:
    marks = {
        "$.temperature": [Mark("WRONG_TYPE", "expected number, received string", coerced=72.5)],
        "$.items[1].unit": [Mark("ENUM_MISMATCH", "expected C | F", is_warning=True)],
    }
    tree = draw(parse(b'{"temperature": "72.5", "items": [1, {"unit": "K"}]}'), marks)
    shown = '<span class="j-string">&quot;72.5&quot;</span>'
    assert f'<mark class="j-mark is-error">{shown}</mark>' in tree.html
    drawn = text(tree.html).split("\n")
    assert drawn[1] == '  "temperature": "72.5",WRONG_TYPE expected number, received string → 72.5'
    assert drawn[5] == '      "unit": "K"ENUM_MISMATCH expected C | F'
    assert tree.unplaced == []


def test_coerced_text_shows_the_original_text() -> None:
    mark = Mark("COERCED", "", received="72.5", coerced=parse(b"72.5"))
    tree = draw(parse(b'{"temperature": 72.5}'), {"$.temperature": [mark]})
    assert "was " in text(tree.html)
    assert '"72.5"' in text(tree.html)


def test_missing_member_is_shown_at_its_position() -> None:
    assert lines({"a": 1}, **{"$__b": Mark("MISSING_REQUIRED", "expected string")}) == [
        "{",
        '  "a": 1',
        "  b: missingMISSING_REQUIRED expected string",
        "}",
    ]


def test_unplaceable_mark_is_returned() -> None:
    mark = Mark("WRONG_TYPE", "")
    assert draw(parse(b"[1]"), {"$[7].x": [mark]}).unplaced == [("$[7].x", mark)]


def test_violation_of_the_whole_value_is_marked() -> None:
    tree = draw(parse(b'"oops"'), {"$": [Mark("WRONG_TYPE", "expected object")]})
    assert text(tree.html) == '"oops"WRONG_TYPE expected object'


def test_path_to_a_violation_is_highlighted() -> None:
    marks = {"$.items[1].unit": [Mark("ENUM_MISMATCH", "")]}
    tree = draw(parse(b'{"items": [{"unit": "C"}, {"unit": "K", "t": 1}], "n": 1}'), marks)
    on_path = re.findall(r'<span class="j-(?:key|index) j-path">([^<]*)</span>', tree.html)
    assert [html.unescape(key) for key in on_path] == ['"items"', "[1]", '"unit"']


def test_distant_violation_is_shown_and_unrelated_parts_are_omitted() -> None:
    items: list[dict[str, object]] = [{"name": "a", "tags": list(range(9))} for _ in range(900)]
    items[800]["name"] = 7
    value = {
        "before": [{"n": n, "text": "x" * 60} for n in range(400)],
        "items": items,
        "after": {"a": 1},
    }
    marks = {"$.items[800].name": [Mark("WRONG_TYPE", "expected string, received number")]}
    tree = draw(parse(json.dumps(value).encode()), marks)
    drawn = text(tree.html).split("\n")
    assert tree.is_cut
    assert tree.unplaced == []
    assert len(drawn) < 30
    assert drawn[1] == '  "before": [ … 400 more ],'
    assert "    … 797 more" in drawn
    assert '      "name": 7,WRONG_TYPE expected string, received number' in drawn
    assert "    … 99 more" in drawn


def test_large_values_are_truncated_with_a_notice() -> None:
    tree = draw(parse(json.dumps(list(range(1_000))).encode()), max_lines=50)
    assert tree.is_cut
    assert len(tree.html.split("\n")) == 50
    assert "8,500 more characters" in text(draw("x" * 10_000).html)
    assert not draw(["a", None]).is_cut


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ('"><img src=x onerror=1>', '\\"><img src=x onerror=1>'),
        ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
        ("nul\x00", "nul\\u0000"),
        ("\ud800", "\\ud800"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("👩\u200d🚒", "👩\u200d🚒"),
    ],
)
def test_hostile_text_is_escaped(hostile: str, shown: str) -> None:
    markup = draw({hostile: hostile}).html
    assert text(markup).count(shown) == 2
    assert "<script" not in markup
    assert "<img" not in markup
    markup.encode()  # a lone surrogate would fail here


@pytest.mark.slow
@given(anything)
def test_arbitrary_json_is_rendered_as_valid_utf8(value: Any) -> None:
    tree = draw(parse(json.dumps(value).encode()), max_lines=20)
    tree.html.encode()
    assert set(re.findall(r"<(\w+)", tree.html)) <= {"span", "mark", "b"}
    inline(value).encode()


@given(st.text(st.characters(codec=None)))
def test_visible_text_is_valid_utf8(value: str) -> None:
    visible(value).encode()


def test_extreme_nesting_is_rejected() -> None:
    with pytest.raises(ValueError, match="deep"):
        parse(b"[" * 200_000)
