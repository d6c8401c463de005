"""Renew the pictures in this folder from a running demo.

    uv run manage.py up --demo --json | tee demo.json
    uv run --group browser docs/take_screenshots.py demo.json

`demo.json` holds the line `up --json` prints: address, user and password. Written are
`screenshot.png` (the README's: a trace with the violation of a failed call) and, in
`screenshots/`, the list and the timeline in both themes.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.browser import FLAGS, find_chromium  # noqa: E402  (found through the path set above)

Theme = Literal["light", "dark"]
FAILED = "/traces/?state=failed"


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
    said = json.loads(parser.parse_args().demo.read_text().splitlines()[0])
    demo = Demo(said["url"], said["user"], said["password"])
    (DOCS / "screenshots").mkdir(exist_ok=True)
    chromium = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for theme in ("light", "dark"):
            page = signed_in(browser, demo, theme, scale=1)
            take(page, "/traces/", f"screenshots/traces-{theme}.png")
            telling = telling_call(page)
            take(page, telling, f"screenshots/timeline-{theme}.png")
        take(signed_in(browser, demo, "light", scale=2), telling, "screenshot.png")
        browser.close()


def signed_in(browser: Browser, demo: Demo, theme: Theme, scale: int) -> Page:
    """A tab of 1440 × 810 CSS pixels; `scale` is physical pixels a CSS pixel."""
    context = browser.new_context(
        base_url=demo.url,
        color_scheme=theme,
        device_scale_factor=scale,
        viewport={"width": 1440, "height": 810},
    )
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Username").fill(demo.user)
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/traces/")
    return page


def telling_call(page: Page) -> str:
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


def take(page: Page, address: str, name: str) -> None:
    """Save what a visitor sees of a page without scrolling."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)  # nothing is hovered
    page.screenshot(path=DOCS / name)
    sys.stdout.write(f"{name}: {(DOCS / name).stat().st_size / 1024:.0f} KiB\n")


if __name__ == "__main__":
    main()
