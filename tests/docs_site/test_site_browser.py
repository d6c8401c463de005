"""The site in a browser, under the product's policy: search, themes, a telephone, accessibility."""

import threading
from collections.abc import Iterator
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from django.core.wsgi import get_wsgi_application
from playwright.sync_api import Browser, Page, expect

from config import documentation
from tests.support import sampling
from tests.support.accessibility import accessibility_findings
from tests.support.browser_errors import complaints

pytestmark = pytest.mark.slow

PAGES_SAMPLED = 8


class _Quiet(WSGIRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def address(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with all middleware, whose documentation is the site that was built for tests."""
    monkeypatch.setattr(documentation, "BUILT", site)
    with make_server("localhost", 0, get_wsgi_application(), handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(base_url=address, color_scheme="light")
    yield context.new_page()
    context.close()


def test_search_finds_pages_without_anything_the_policy_refuses(tab: Page) -> None:
    heard = complaints(tab)
    response = tab.goto("/docs/start/auditor/")
    assert response is not None
    assert "script-src 'self';" in response.headers["content-security-policy"]
    tab.get_by_role("textbox", name="Search").fill("maintenance windows")
    tab.keyboard.press("Enter")

    results = tab.locator("#search-results li a")
    expect(results.filter(has_text="Alert rules").first).to_be_visible()
    assert accessibility_findings(tab) == []
    results.filter(has_text="Maintenance windows").first.click()
    expect(tab).to_have_url("/docs/alert-rules/#maintenance-windows")
    assert heard == []


def test_search_without_result_says_so(tab: Page) -> None:
    tab.goto("/docs/search/?q=qwxyz")

    expect(tab.locator("#search-results")).to_contain_text("did not match any documents")


def test_theme_is_the_product_s_until_it_is_chosen_here(tab: Page, address: str) -> None:
    def ground() -> str:
        colour: str = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    tab.goto("/docs/")
    light = ground()
    tab.context.add_cookies([{"name": "theme", "value": "dark", "url": address}])
    tab.reload()
    dark = ground()
    assert dark != light
    assert accessibility_findings(tab) == []

    tab.get_by_role("button", name="Toggle Light").last.click()
    chosen = ground()
    tab.goto("/docs/glossary/")
    assert ground() == chosen


@pytest.mark.generated(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_telephone_and_are_accessible(
    browser: Browser, address: str, site: Path, scheme: str, pytestconfig: pytest.Config
) -> None:
    every = sorted(page.parent.relative_to(site).as_posix() for page in site.rglob("index.html"))
    context = browser.new_context(
        base_url=address,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": 390, "height": 844},
    )
    tab = context.new_page()
    heard = complaints(tab)
    for page in sampling.some(pytestconfig, scheme, every, PAGES_SAMPLED):
        tab.goto(f"/docs/{page}/")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), page
        assert accessibility_findings(tab) == [], page
    assert heard == []
    context.close()
