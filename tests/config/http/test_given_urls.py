"""URLs of other servers are refused with what is wrong with them."""

import pytest

from config.http.given_urls import checked_url


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "must begin with https://"),
        ("a.example/x", "must begin with https://"),
        ("//a.example/x", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
        ("javascript:alert(1)", "must begin with https://"),
        ("https:///x", "name a host"),
        ("https://a.example:0/", "name a host"),
        ("https://a.example:99999/", "not a URL"),
        ("https://a.example:x/", "not a URL"),
        ("https://[::1/", "not a URL"),
        (f"https://{'a' * 64}.example/", "not a URL"),
        ("https://u:p@a.example/", "user or a password"),
        ("https://@a.example/", "user or a password"),
        ("https://a.example/ x", "must be encoded"),
        ("https://a.example/\r\nHost: b", "must be encoded"),
        ("https://a.example/\x7f", "must be encoded"),
        ("https://a.example\\@b.example/", "must be encoded"),
        ("https://a.example/#part", "must not contain a fragment"),
    ],
)
def test_refused_url_gets_its_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        checked_url(url)


def test_query_is_refused_where_it_has_no_use() -> None:
    url = "https://a.example/x?key=1"

    assert checked_url(url).query == "key=1"
    with pytest.raises(ValueError, match="must not contain a query"):
        checked_url(url, may_have_query=False)


@pytest.mark.parametrize(
    "url", ["https://bücher.example/ü", "http://[::1]:8088/a?b=c", "https://a"]
)
def test_url_of_a_server_is_taken(url: str) -> None:
    assert checked_url(url).hostname
