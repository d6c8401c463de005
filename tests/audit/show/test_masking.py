"""Structure in place of values: what it shows, and what it must not show."""

import json

import pytest

from audit.events.json_values import parse
from audit.show.json_tree import draw, inline
from audit.show.masking import mask


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("", "text of 0 characters"),
        ("ä", "text of 1 character"),
        ("x" * 1234, "text of 1,234 characters"),
        (72.5, "number"),
        (1, "number"),
        (True, "true or false"),
        (None, "null"),
        ([1, "ab"], "[number, text of 2 characters]"),
        ({"city": {"a-b": []}}, '{"city": {"a-b": []}}'),
        ({}, "{}"),
    ],
)
def test_mask_shows_keys_types_and_lengths(value: object, shape: str) -> None:
    drawn = inline(mask(parse(json.dumps(value).encode())))
    assert drawn.replace("&quot;", '"') == shape


@pytest.mark.parametrize(
    "key", ["ada@example.com", "Ada Lovelace", "4711", "", "x" * 65, "Zoë", "a.b", "<b>"]
)
def test_key_that_may_be_personal_is_replaced_by_its_length(key: str) -> None:
    shown = mask({"first": 1, key: 2})
    assert list(shown) == [
        "first",
        f"member 2, {len(key)} character{'' if len(key) == 1 else 's'}",
    ]


def test_masked_tree_contains_no_values() -> None:
    secret = "s3cret"
    value = {"a": secret, "b": [secret, {"c": [secret] * 400}], f"{secret} x": {"d": secret}}
    tree = draw(mask(parse(json.dumps(value).encode())))
    assert secret not in tree.html
    assert tree.is_cut
    assert 'class="j-shape"' in tree.html
