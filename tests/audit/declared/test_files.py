"""Files of configuration say after writing and reading what they said before."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from audit.declared.document import Instant
from audit.declared.exporting import as_text
from audit.declared.files import read_file

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["yaml", "json"])
@given(value=VALUES)
@example(value=["on", "yes", "~", "null", "2027-01-31", "2027-01-31T00:00:00Z", "0x1f", "1_0", "="])
@example(
    value=["a: b", "- c", "# d", "&e", "*f", "!g", "%h", "@i", "`j", "|", ">", "{k}", "'", '"']
)
@example(
    value=["\x00\x1b\x85\u2028\ufeff\U0001f600", " space ", "tab\t", "line\n", "\n\n", "crlf\r\n"]
)
@example(value={"\x85": "a\x85b"})
@example(value={"<<": 1, "": {"on": {}, "? ": []}, "a\nb": 1e16, "c": -0.0, "d": 1e-7, "e": 5e300})
def test_value_of_a_tool_survives_writing_and_reading(form: str, value: Any) -> None:
    document = {"version": 1, "tenants": [{"slug": "acme", "tools": [{"name": value}]}]}
    text = as_text(document, form)
    [source] = read_file(f"config.{form}", text.encode(), Path()).tenants
    assert source.tenant.tools == [{"name": value}]


def test_instants_are_in_utc() -> None:
    read = TypeAdapter(Instant).validate_python
    assert str(read("2126-07-20T03:50:28-23:03")) == "2126-07-21 02:53:28+00:00"
    assert read("2126-07-20") == datetime(2126, 7, 20, tzinfo=UTC)
    with pytest.raises(ValidationError, match="out of range"):
        read("0001-01-01T00:00:00+23:00")
