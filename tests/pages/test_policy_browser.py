"""Every page under the real content security policy, in a browser: no error."""

from typing import TYPE_CHECKING, Literal

import pytest
from django.test import Client
from playwright.sync_api import Page, Response, expect

from tests.isolation.routes import ROUTES, Object, Open
from tests.isolation.world import World, make_world
from tests.support import sampling
from tests.support.browser_errors import complaints
from tests.support.installation import until
from tests.support.sign_in import sign_in, sign_in_by_form

if TYPE_CHECKING:
    from tests.support.server import LiveServer

PAGES = sorted(
    route
    for route, visit in ROUTES.items()
    if not isinstance(visit, Open) and visit.scope is None and visit.answers.get("GET") == 200
)
PAGES_SAMPLED = 20
HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.fixture(scope="module")
def world() -> World:
    """A tenant with something of everything, so that every part of every page is there."""
    return make_world("acme")


def _addresses(world: World) -> list[str]:
    """Of the pages; what a browser would put into a file is none."""
    client = Client()
    world.admin.refresh_from_db()  # signing in may have hashed the password again
    client.force_login(world.admin)
    visits = [ROUTES[route] for route in PAGES]
    paths = [visit.path(world) if isinstance(visit, Object) else visit.path for visit in visits]
    return [path for path in paths if "Content-Disposition" not in client.get(path).headers]


def _check_headers(response: Response | None) -> None:
    assert response is not None
    headers = response.headers
    assert {name: headers.get(name) for name in HEADERS} == HEADERS, response.url
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_pages_match_the_isolation_routes(world: World) -> None:
    assert len(PAGES) > 10
    assert {"", "calls/", "inbox/<uuid:pk>", "settings/keys"} <= set(PAGES)


def test_no_page_violates_the_policy(page: Page, world: World, pytestconfig: pytest.Config) -> None:
    """Each page in light and in dark: one is loaded in the one, the next in the other."""
    heard = complaints(page)
    _check_headers(page.goto("/login"))
    sign_in_by_form(page, world.admin)
    addresses = _addresses(world)
    assert len(addresses) > len(PAGES) / 2
    schemes: list[Literal["light", "dark"]] = ["light", "dark"]
    for address in sampling.some(pytestconfig, "policy", addresses, PAGES_SAMPLED):
        response = page.goto(address)
        assert response is not None
        assert response.status == 200, address
        _check_headers(response)
        schemes.reverse()
        page.emulate_media(color_scheme=schemes[0])
        page.evaluate("new Promise(requestAnimationFrame)")  # until it is painted again
        assert heard == [], address


def test_injected_script_does_not_run_and_is_reported(page: Page, world: World) -> None:
    """The proof that the test above can fail."""
    sign_in(page, world.admin)
    heard = complaints(page)
    page.goto("/traces/")
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s); document.body.setAttribute('style', 'color: red'); }"
    )
    # Complaints arrive beside the answers of the page.
    until(
        lambda: (
            page.evaluate("window.ran") is None
            and any("script-src" in complaint for complaint in heard)
        )
    )


def test_error_pages_are_styled_and_keep_the_policy(
    page: Page, world: World, live_server: "LiveServer"
) -> None:
    sign_in(page, world.admin)
    refused: list[str] = []
    page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
    address = f"{live_server.url}/nowhere/"
    response = page.goto(address)
    _check_headers(response)
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    assert refused == [address], "nothing but the page itself is missing"
    card = page.locator(".bare-card")
    assert card.evaluate("it => getComputedStyle(it).borderTopWidth") != "0px"
    light = page.locator("body").evaluate("it => getComputedStyle(it).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.locator("body").evaluate("it => getComputedStyle(it).backgroundColor") != light
    page.get_by_role("link", name="Back to the overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_form_without_a_token_gets_a_styled_error_page(page: Page, world: World) -> None:
    sign_in(page, world.admin)
    page.goto("/settings/keys")
    page.get_by_label("Name").fill("forged")
    page.context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("heading", name="Form expired")).to_be_visible()
