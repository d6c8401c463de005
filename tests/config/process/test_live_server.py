"""The live server of the tests is the real one, opened in a real browser."""

from http import HTTPStatus
from urllib.request import urlopen

from playwright.sync_api import Page, expect

from tests.support.factories import Cast
from tests.support.server import LiveServer


def test_live_server_is_healthy_and_ready(live_server: LiveServer) -> None:
    for path in ("/healthz", "/readyz"):
        with urlopen(live_server.url + path) as answer:
            assert answer.status == HTTPStatus.OK


def test_browser_can_open_a_page_of_the_live_server(page: Page, acme: Cast) -> None:
    page.goto("/login")
    page.locator("[name=username]").fill(acme.viewer.username)
    expect(page.locator("[name=username]")).to_have_value(acme.viewer.username)
