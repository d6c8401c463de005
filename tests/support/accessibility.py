"""The accessibility checks of axe-core on a page, in light and in dark."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Literal

from playwright.sync_api import Page, ViewportSize, expect

type Scheme = Literal["light", "dark"]
_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
DOUBLE_SIZE: ViewportSize = {"width": 720, "height": 450}
_COLOUR_RULES = ["color-contrast", "link-in-text-block"]
"""axe's rules of category `cat.color`, but for the one that is off unless asked for."""


def accessibility_findings(page: Page, schemes: Sequence[Scheme] = ("light", "dark")) -> list[str]:
    """The serious and critical findings of axe-core: scheme, rule, element and reason.

    All rules run on the page in the first scheme. In another only colours differ (css/tokens.css),
    so only their rules run again, on the page as it is.
    """
    expect(page.locator(".htmx-request")).to_have_count(0)  # what loads is dimmed meanwhile
    page.evaluate(_AXE)
    first, *others = schemes
    findings = _findings(page, first, {})
    for scheme in others:
        findings += _findings(page, scheme, {"runOnly": _COLOUR_RULES})
    return findings


def findings_in_menus(page: Page) -> list[str]:
    """The same of each menu and each question of the page while it is open, in light and in dark.

    The rest of the page is not checked again.
    """
    found: list[str] = []
    for menu in page.locator("main details:is(.menu, .confirm)").all():
        if menu.is_visible():
            menu.evaluate("it => { it.open = true; it.dataset.checked = '' }")
            options = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa"]}}
            for scheme in ("light", "dark"):
                found += _findings(page, scheme, options, "[data-checked]")
            menu.evaluate("it => { it.open = false; delete it.dataset.checked }")
    return found


def findings_in_forced_colours(page: Page) -> list[str]:
    """The same of the rules about colours while the system's few colours replace the page's own."""
    page.emulate_media(forced_colors="active")
    page.evaluate(_AXE)
    try:
        return _findings(page, "light", {"runOnly": _COLOUR_RULES})
    finally:
        page.emulate_media(forced_colors="none")


def running_animations(page: Page) -> int:
    """How many animations and transitions of the page run for somebody who wants few."""
    page.emulate_media(reduced_motion="reduce")
    running: int = page.evaluate(
        "document.getAnimations().filter((it) => it.playState === 'running').length"
    )
    return running


def width_at_double_size(page: Page) -> int:
    """How wide the page is in CSS pixels in a window of 1440 that is enlarged by 200 %."""
    return width_in(page, DOUBLE_SIZE)


def width_in(page: Page, window: ViewportSize) -> int:
    """How wide the page is in CSS pixels in a window of this size.

    A chart gets its new width in the next frame (ResizeObserver in charts.js), so the width is
    read in the one after it.
    """
    page.set_viewport_size(window)
    width: int = page.evaluate("""() => new Promise((read) => {
      const root = document.documentElement;
      requestAnimationFrame(() => requestAnimationFrame(() => read(root.scrollWidth)));
    })""")
    page.set_viewport_size({"width": 1280, "height": 720})
    return width


def open_folds(page: Page) -> None:
    """Open everything that is folded in the page's content."""
    page.evaluate(
        "document.querySelectorAll('main details:not(.menu)').forEach(it => { it.open = true })"
    )


def _findings(
    page: Page, scheme: Scheme, options: dict[str, Any], within: str = "html"
) -> list[str]:
    # Colours change at once: a transition on its way is no colour of the page.
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    violations: list[dict[str, Any]] = page.evaluate(
        "async ([within, options]) => (await axe.run(within, options)).violations",
        [within, {"resultTypes": ["violations"], **options}],
    )
    return [
        f"{scheme}: {one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in violations
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]
