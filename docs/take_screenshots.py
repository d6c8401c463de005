"""Renew the pictures in this folder from a running demo.

    uv run manage.py up --demo --json | tee demo.json
    uv run --group browser docs/take_screenshots.py demo.json

`demo.json` holds the line `up --json` prints: address, user and password. Written are
`screenshot.png` (the README's: a trace with the violation of a failed call) and, in
`screenshots/`, the pages of calls in both themes, on a desk (1440) and on a telephone (390).
"""

import argparse
import json
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.support.browser import FLAGS, find_chromium  # noqa: E402  # needs the path set above

Theme = Literal["light", "dark"]
FAILED = "/traces/?state=failed"
TOOL = "get_weather"
THEMES: tuple[Theme, ...] = ("light", "dark")
WIDTHS = {"desk": 1440, "phone": 390}  # CSS pixels
PAGES = {
    "overview": "/?range=7d",
    "violations": "/violations/?range=7d",
    "latency": "/latency/?range=7d",
    "repeats": "/repeats/?range=7d",
    "reports": "/reports/",
    "tools": "/tools/",
    "ledger": "/ledger/",
    "actions": "/actions/",
    "evidence": "/evidence/",
    "traces": "/traces/",
    "calls": "/calls/?q=state:error",
    "open": "/calls/open",
}


@dataclass(frozen=True, slots=True)
class Demo:
    """Where the demo runs, and who looks at it."""

    url: str
    user: str
    password: str


def main() -> None:
    """Take all pictures. Ends with a line that says so where the demo has no such trace."""
    parser = argparse.ArgumentParser(description="Renew docs/*.png from a running demo.")
    parser.add_argument("demo", type=Path, help="a file with the line `up --demo --json` printed")
    facts = json.loads(parser.parse_args().demo.read_text().splitlines()[0])
    demo = Demo(facts["url"], facts["user"], facts["password"])
    (DOCS / "screenshots").mkdir(exist_ok=True)
    chromium = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        demo_pages: dict[str, str] = {}
        for theme, (size, width) in product(THEMES, WIDTHS.items()):
            page = signed_in(browser, demo, theme, width=width)
            demo_pages = demo_pages or {"timeline": highlighted_call(page), "tool": tool_page(page)}
            for name, address in (PAGES | demo_pages).items():
                take(page, address, f"screenshots/{name}-{theme}-{size}.png")
            page.goto(demo_pages["timeline"])
            page.locator("#call-panel").get_by_title("Open this call on its own page").click()
            take(page, page.url, f"screenshots/call-{theme}-{size}.png")
            if width > 1000:
                take(page, searched(page), f"screenshots/search-{theme}-{size}.png")
        sharp = signed_in(browser, demo, "light", width=1440, scale=2)
        take(sharp, demo_pages["timeline"], "screenshot.png")
        browser.close()


def signed_in(browser: Browser, demo: Demo, theme: Theme, *, width: int, scale: int = 1) -> Page:
    """A tab of that many CSS pixels, 810 high; `scale` is physical pixels a CSS pixel."""
    context = browser.new_context(
        base_url=demo.url,
        color_scheme=theme,
        device_scale_factor=scale,
        viewport={"width": width, "height": 810},
    )
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Username").fill(demo.user)
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: "/login" not in url)
    return page


def highlighted_call(page: Page) -> str:
    """The address of a failed call with violations, in the listed trace where most went wrong."""
    page.goto(FAILED)
    best: tuple[int, str] = (0, "")
    links = page.locator(".which a").all()
    for trace in [str(link.get_attribute("href")) for link in links]:
        page.goto(trace)
        loud = page.locator(".calls .is-loud")
        broken = page.locator(".calls li > a:has(.state.is-failed):has(.state.is-violation)")
        if broken.count() and loud.count() > best[0]:
            best = (loud.count(), trace + str(broken.first.get_attribute("href")))
    if not best[0]:
        sys.exit("No failed trace on the first page holds a violation: let the demo run on.")
    return best[1]


def tool_page(page: Page) -> str:
    """The address of a registered tool."""
    page.goto("/tools/")
    page.get_by_role("link", name=TOOL, exact=True).first.click()
    page.get_by_role("heading", name=TOOL).wait_for()
    return page.url


def searched(page: Page) -> str:
    """The address of a finished search in payloads."""
    page.goto("/calls/")
    page.get_by_text("Search in payloads").click()
    page.get_by_label("Text in arguments or output").fill("London")
    page.locator(".mini").get_by_role("button", name="Search").click()
    page.get_by_text("Done", exact=False).first.wait_for()
    return page.url


def take(page: Page, address: str, name: str) -> None:
    """Save what a visitor sees of a page without scrolling."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)  # nothing is hovered
    page.screenshot(path=DOCS / name)
    sys.stdout.write(f"{name}: {(DOCS / name).stat().st_size / 1024:.0f} KiB\n")


if __name__ == "__main__":
    main()
