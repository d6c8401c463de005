"""Names in mails: no line, header or link of theirs."""

import pytest

from tenants.mail.texts import NAME_MAX, harmless


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Acme Inc.", "Acme Inc."),
        ("ada@acme", "ada@acme"),
        ("https://evil.example/x", "https : / / evil . example / x"),
        ("go to evil.example now", "go to evil . example now"),
        ("evil。example", "evil 。 example"),
        ("evil．example", "evil . example"),
        ("a\r\nBcc: eve@evil.example", "a Bcc: eve@evil . example"),
        ("a\u202eb\u200bc\x00d", "abcd"),
        ("www.evil.example", "www . evil . example"),
    ],
)
def test_name_is_a_line_without_links(name: str, shown: str) -> None:
    assert harmless(name) == shown


def test_name_is_short() -> None:
    assert len(harmless("x" * 999)) == NAME_MAX
