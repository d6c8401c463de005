"""Every page of the URL map: axe, forced colours, a phone, double size, and hostile names.

The pages are those of `tests.isolation.routes`, where no route may be missing. So a new page is
visited here without being listed. They are full (a row in every table), empty, and refused forms.
With `--sample` some of them are visited.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Response

from tenants.models import User
from tests.isolation.routes import ROUTES, Listing, Object, Open, Visit
from tests.isolation.world import World, make_world
from tests.support import sampling
from tests.support.accessibility import (
    DOUBLE_SIZE,
    accessibility_findings,
    findings_in_forced_colours,
    findings_in_menus,
    open_folds,
    running_animations,
    width_at_double_size,
    width_in,
)
from tests.support.browser_errors import complaints
from tests.support.factories import make_cast
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

HOSTILE = "\"'><s>{{7}}"
FOREIGN = "main s"
PHONE = 390
SAMPLED = 6
_POST = """
([address, fields]) => {
  const form = Object.assign(document.createElement("form"), { method: "post", action: address });
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  for (const [name, value] of Object.entries({ ...fields, csrfmiddlewaretoken: token })) {
    form.append(Object.assign(document.createElement("input"), { name, value }));
  }
  document.body.append(form);
  form.submit();
}
"""


@dataclass(frozen=True)
class Seen:
    """What is wrong with a page in one of its states."""

    axe: list[str]
    forced: list[str]
    moving: int
    narrow: int
    """Its width on a phone, in CSS pixels."""
    double: int
    """Its width in a window that is enlarged by 200 %."""
    foreign: int
    """Elements that a text made."""
    heard: list[str]


def path_of(visit: Visit, world: World) -> str:
    return visit.path(world) if isinstance(visit, Object) else visit.path


def pages_of(world: World) -> dict[str, str]:
    """The address of each route that shows a whole page, no file and no part for htmx, by route."""
    client, pages = world.client(), {}
    for route, visit in ROUTES.items():
        if route.startswith("admin/"):  # Django's own pages, for the staff of an installation
            continue
        if visit.answers.get("GET") != 200 or not (isinstance(visit, Open) or visit.scope is None):
            continue
        answer = client.get(path_of(visit, world))
        assert answer.status_code in (200, 302), route  # who has signed in needs no page for it
        content = answer.getvalue()  # read to its end: few downloads may be open
        is_file = "Content-Disposition" in answer.headers
        is_text = answer.headers.get("Content-Type", "").startswith("text/html") and not is_file
        if answer.status_code == 200 and is_text and content.lstrip()[:9].lower() == b"<!doctype":
            pages[route] = path_of(visit, world)
    return pages


def look(page: Page, answer: Response | None, status: int, heard: list[str]) -> Seen:
    """Look at an opened page in every way."""
    assert answer is not None
    assert answer.status == status, page.url
    open_folds(page)
    findings = accessibility_findings(page) + findings_in_menus(page)
    forced, moving = findings_in_forced_colours(page), running_animations(page)
    double = width_at_double_size(page)
    narrow = width_in(page, {"width": PHONE, "height": 844})
    said = [one for one in heard if f"status of {status}" not in one]
    heard.clear()
    return Seen(findings, forced, moving, narrow, double, page.locator(FOREIGN).count(), said)


@pytest.fixture(scope="module")
def world() -> World:
    return make_world("acme", HOSTILE)


@pytest.fixture(scope="module")
def pages(world: World) -> dict[str, str]:
    return pages_of(world)


@pytest.fixture(scope="module")
def seen(
    browser: Browser,
    live_server: LiveServer,
    world: World,
    pages: dict[str, str],
    pytestconfig: pytest.Config,
) -> dict[str, Seen]:
    """What was seen, by state and route."""
    found: dict[str, Seen] = {}

    def tab(user: User) -> Iterator[tuple[Page, list[str]]]:
        with browser.new_context(base_url=live_server.url) as context:
            page = context.new_page()
            sign_in(page, user)
            yield page, complaints(page)

    def some(state: str, routes: list[str]) -> list[str]:
        return sampling.some(pytestconfig, f"every page {state}", routes, SAMPLED)

    for page, heard in tab(world.admin):
        for route in some("full", list(pages)):
            found[f"full {route}"] = look(page, page.goto(pages[route]), 200, heard)
        for route in some("refused", REFUSED):
            visit = ROUTES[route]
            fields = visit.data(world) if isinstance(visit, Listing) else {}
            page.goto("/settings/preferences")
            heard.clear()
            with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
                page.evaluate(_POST, [path_of(visit, world), fields])
            page.wait_for_url(f"**{urlsplit(path_of(visit, world)).path}")
            found[f"refused {route}"] = look(page, answered.value, 422, heard)
    listings = [route for route in pages if isinstance(ROUTES[route], Listing)]
    for page, heard in tab(make_cast("globex").admin):
        for route in some("empty", listings):
            answer = page.goto(pages[route])
            assert answer is not None
            # 404: there is no first entry yet.
            assert answer.status in (200, 404), route
            found[f"empty {route}"] = look(page, answer, answer.status, heard)
    return found


REFUSED = [
    route
    for route, visit in ROUTES.items()
    if not isinstance(visit, Open) and visit.scope is None and visit.answers.get("POST") == 422
]
"""Routes that refuse what `routes.py` sends, and show the form again."""


def test_pages_are_found(pages: dict[str, str]) -> None:
    """Among the pages are those of screens that lists of pages had forgotten."""
    forgotten = {"incidents/", "incidents/<uuid:pk>", "samples/", "settings/streams", "boards/"}
    assert forgotten | {"settings/floor", "reports/<uuid:pk>/clauses", "share/"} <= pages.keys()
    assert len(pages) > 80
    assert len(REFUSED) > 10


def test_axe_reports_nothing_serious(seen: dict[str, Seen]) -> None:
    found = {name: one.axe for name, one in seen.items() if one.axe}
    assert not found, json.dumps(found, indent=1)


def test_axe_reports_nothing_serious_in_forced_colours(seen: dict[str, Seen]) -> None:
    found = {name: one.forced for name, one in seen.items() if one.forced}
    assert not found, json.dumps(found, indent=1)


def test_nothing_scrolls_sideways(seen: dict[str, Seen]) -> None:
    assert {name: one.narrow for name, one in seen.items() if one.narrow > PHONE} == {}
    wide = {name: one.double for name, one in seen.items() if one.double > DOUBLE_SIZE["width"]}
    assert wide == {}


def test_nothing_moves_for_those_who_want_few_motions(seen: dict[str, Seen]) -> None:
    assert {name: one.moving for name, one in seen.items() if one.moving} == {}


def test_hostile_names_are_text_on_every_page(seen: dict[str, Seen]) -> None:
    assert {name: one.foreign for name, one in seen.items() if one.foreign} == {}


def test_browser_complains_about_no_page(seen: dict[str, Seen]) -> None:
    assert {name: one.heard for name, one in seen.items() if one.heard} == {}
