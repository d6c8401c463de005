"""The browser of a session in words."""

import pytest

from tenants.accounts.browsers import in_words

KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)"
CHROME = f"Mozilla/5.0 (X11; Linux x86_64) {KHTML}"
EDGE = f"Mozilla/5.0 (Windows NT 10.0) {KHTML} Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; rv:150.0) Gecko/20100101 Firefox/150.0"
IPHONE = f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) {KHTML} Version/18.0 Safari/604.1"
ANDROID = f"Mozilla/5.0 (Linux; Android 16; K) {KHTML} Chrome/156.0.0.0 Mobile Safari/537.36"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (f"{CHROME} Chrome/156.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"{CHROME} HeadlessChrome/156.0.8078.108 Safari/537.36", "Chrome on Linux"),
        (EDGE, "Edge on Windows"),
        (FIREFOX, "Firefox on Windows"),
        (IPHONE, "Safari on iPhone"),
        (ANDROID, "Chrome on Android"),
        ("curl/8.9", "curl/8.9"),
        ("", ""),
    ],
)
def test_browser_is_named(header: str, words: str) -> None:
    assert in_words(header) == words
