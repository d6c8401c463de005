"""The accessibility checks of axe-core on a page, in light and in dark."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Literal

from playwright.sync_api import Page, expect

type Scheme = Literal["light", "dark"]
_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
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


def open_folds(page: Page) -> None:
    """Open everything that is folded in the page's content."""
    page.evaluate(
        "document.querySelectorAll('main details:not(.menu)').forEach(it => { it.open = true })"
    )


def _findings(page: Page, scheme: Scheme, options: dict[str, Any]) -> list[str]:
    # Colours change at once: a transition on its way is no colour of the page.
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    violations: list[dict[str, Any]] = page.evaluate(
        "async (options) => (await axe.run(document, options)).violations",
        {"resultTypes": ["violations"], **options},
    )
    return [
        f"{scheme}: {one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in violations
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]
