"""The documentation as the server serves it, built and not."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import pytest
from django.test import Client

from audit.show.explained import EXPLAINED
from config import documentation

PAGE = "<!doctype html><title>Alerts</title>"


class Answer(NamedTuple):
    """What a browser gets."""

    status: int
    headers: Mapping[str, str]
    text: str


def ask(path: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request of nobody, without following redirects."""
    response = Client().generic(method, path, headers=headers)
    return Answer(response.status_code, response.headers, response.content.decode())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built site of two pages and a style sheet, beside a file that is not of it."""
    built = tmp_path / "built"
    (built / "alerts").mkdir(parents=True)
    (built / "index.html").write_text("<title>Tooltrail</title>")
    (built / "alerts" / "index.html").write_text(PAGE)
    (built / "docs.css").write_text("body {}")
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(documentation, "BUILT", built)
    return built


@pytest.fixture
def not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation, "BUILT", tmp_path / "built")


@pytest.mark.usefixtures("site")
def test_pages_are_served_to_everybody_under_the_strict_policy() -> None:
    answer = ask("/docs/alerts/")

    assert (answer.status, answer.text) == (200, PAGE)
    assert answer.headers["Content-Type"] == 'text/html; charset="utf-8"'
    assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
    assert "style-src 'self';" in answer.headers["Content-Security-Policy"]
    assert not {"Set-Cookie", "Access-Control-Allow-Origin"} & set(answer.headers)
    assert ask("/docs/docs.css").headers["Content-Type"].startswith("text/css")


@pytest.mark.usefixtures("site")
def test_addresses_without_slash_and_with_index_lead_to_the_page() -> None:
    for path, page in {
        "/docs": "/docs/",
        "/docs/alerts": "/docs/alerts/",
        "/docs/alerts/index.html": "/docs/alerts/",
    }.items():
        answer = ask(path)
        assert answer.status == 302
        assert urljoin(path, answer.headers["Location"]) == page


@pytest.mark.usefixtures("site")
def test_browsers_may_keep_files_and_ask_whether_they_changed() -> None:
    first = ask("/docs/alerts/")
    assert first.headers["Cache-Control"] == "max-age=60, public"

    again = ask("/docs/alerts/", **{"If-None-Match": first.headers["ETag"]})
    part = ask("/docs/alerts/", Range="bytes=0-8")

    assert (again.status, again.text) == (304, "")
    assert (part.status, part.text) == (206, "<!doctype")


@pytest.mark.usefixtures("site")
def test_head_has_the_headers_and_no_body() -> None:
    answer = ask("/docs/alerts/", "HEAD")

    assert (answer.status, answer.text) == (200, "")
    assert answer.headers["Content-Length"] == str(len(PAGE))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.usefixtures("site")
def test_nothing_can_be_sent(method: str) -> None:
    assert ask("/docs/alerts/", method).status == 405
    assert ask("/docs", method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "nothing/",
        "../secret.txt",
        "%2e%2e/secret.txt",
        "alerts/../../secret.txt",
        "..%2fsecret.txt",
        "/etc/passwd",
        "%2fetc/passwd",
        "secret.txt%00.html",
        "..\\secret.txt",
    ],
)
@pytest.mark.usefixtures("site")
def test_only_files_of_the_site_are_served(path: str) -> None:
    assert ask(f"/docs/{path}").status == 404


def test_later_build_needs_no_restart(site: Path) -> None:
    assert ask("/docs/new/").status == 404
    (site / "new").mkdir()
    (site / "new" / "index.html").write_text("new")
    os.utime(site / "index.html", ns=(1, 1))

    assert ask("/docs/new/").text == "new"


@pytest.mark.usefixtures("not_built")
def test_checkout_shows_documents_as_written_and_how_to_build() -> None:
    page = ask("/docs/queries/").text

    assert documentation.BUILD in page
    assert "tool:search state:error duration:&gt;2s since:yesterday" in page
    assert 'href="/docs/adr/0034-what-sets-calls-apart/"' in page
    assert "# Documentation of Tooltrail" in ask("/docs/").text
    assert "# Architecture decision records" in ask("/docs/adr/").text


@pytest.mark.parametrize("target", sorted(set(EXPLAINED.values())))
@pytest.mark.usefixtures("not_built")
def test_checkout_shows_what_explains_each_page(target: str) -> None:
    assert ask(f"/docs/{target.partition('#')[0]}").status == 200


@pytest.mark.parametrize("path", ["nothing/", "../README/", "%2e%2e/SECURITY/", "site/"])
@pytest.mark.usefixtures("not_built")
def test_checkout_shows_no_other_files(path: str) -> None:
    assert ask(f"/docs/{path}").status == 404
