"""Renew the pictures of the documentation.

    uv run --group browser python -m docs.take_screenshots

Starts a demo of its own in an empty folder, takes the pictures in the light theme, and stops it.
`screenshot.png` is the README's, at twice the size. Those in `screenshots/` are 1440 pixels wide.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.browser import FLAGS, find_chromium

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "screenshots"
WIDTH, HEIGHT = 1440, 810  # CSS pixels
PAGES = {
    "overview": "/?range=24h",
    "calls": "/calls/?q=state:failed",
    "violations": "/violations/?range=7d",
    "repeats": "/repeats/?range=7d",
    "costs": "/costs/?range=7d",
    "ledger": "/ledger/",
    "actions": "/actions/",
}
DATA_S = 120
TOOL = "get_weather"


def main() -> None:
    """Take all pictures. Ends with a message if the demo does not start or has no failed trace."""
    PICTURES.mkdir(exist_ok=True)
    chromium = find_chromium()
    with running_demo() as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = signed_in(browser, demo)
        timeline = failed_call(page)
        for name, path in PAGES.items():
            take(page, path, PICTURES / f"{name}.png")
        take(page, tool_page(page), PICTURES / "tool.png")
        take(page, fired_alerts(page), PICTURES / "alerts.png")
        take(page, board_page(page), PICTURES / "board.png")
        take(signed_in(browser, demo, scale=2), timeline, DOCS / "screenshot.png")
        browser.close()


@contextmanager
def running_demo() -> Iterator[dict[str, str]]:
    """A demo in a folder of its own: its address, user and password."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-pictures-") as folder:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--demo", "--json", "--port", "0"],
            cwd=DOCS.parent,
            env=os.environ | {"TOOLTRAIL_VAR": folder},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                sys.exit("The demo did not start.")
            yield json.loads(line)
        finally:
            process.terminate()
            process.wait(timeout=60)


def signed_in(browser: Browser, demo: dict[str, str], *, scale: int = 1) -> Page:
    """A tab of a user of the demo; `scale` is physical pixels a CSS pixel."""
    context = browser.new_context(
        base_url=demo["url"],
        color_scheme="light",
        device_scale_factor=scale,
        viewport={"width": WIDTH, "height": HEIGHT},
    )
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Username").fill(demo["user"])
    page.get_by_label("Password").fill(demo["password"])
    page.get_by_label("Password").press("Enter")
    page.wait_for_url(lambda url: "/login" not in url)
    return page


def failed_call(page: Page) -> str:
    """The address of a failed call with violations, in the listed trace with most failures."""
    until = time.monotonic() + DATA_S
    while time.monotonic() < until:
        page.goto("/traces/?state=failed")
        best: tuple[int, str] = (0, "")
        for trace in [str(link.get_attribute("href")) for link in page.locator(".which a").all()]:
            page.goto(trace)
            loud = page.locator(".calls .is-loud")
            broken = page.locator(".calls li > a:has(.state.is-failed):has(.state.is-violation)")
            if broken.count() and loud.count() > best[0]:
                best = (loud.count(), trace + str(broken.first.get_attribute("href")))
        if best[0]:
            return best[1]
        time.sleep(5)
    sys.exit("No failed trace of the demo has a violation.")


def tool_page(page: Page) -> str:
    """The address of a registered tool."""
    page.goto("/tools/")
    page.get_by_role("link", name=TOOL, exact=True).first.click()
    page.get_by_role("heading", name=TOOL).wait_for()
    return page.url


def fired_alerts(page: Page) -> str:
    """The address of the alerts, when some rules of the demo have fired."""
    until = time.monotonic() + DATA_S
    while time.monotonic() < until:
        page.goto("/alerts/")
        if page.locator("table.alerts tbody tr").count() > 1:
            return page.url
        time.sleep(5)
    sys.exit("No rule of the demo has fired.")


def board_page(page: Page) -> str:
    """The address of the demo's board."""
    page.goto("/boards/")
    page.locator("td.lead a").first.click()
    page.wait_for_url("**/boards/*")
    return page.url


def take(page: Page, address: str, file: Path) -> None:
    """Save what a visitor sees of a page without scrolling."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)  # nothing is hovered
    page.screenshot(path=file)
    sys.stdout.write(f"{file.relative_to(DOCS)}: {file.stat().st_size / 1024:.0f} KiB\n")


if __name__ == "__main__":
    main()
