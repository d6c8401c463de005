"""The accessibility checks of axe-core on a page."""

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page, expect

_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()


def accessibility_findings(page: Page) -> list[str]:
    """The serious and critical findings of axe-core: rule, element and reason."""
    expect(page.locator(".htmx-request")).to_have_count(0)  # what loads is dimmed meanwhile
    page.evaluate(_AXE)
    violations: list[dict[str, Any]] = page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
    )
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in violations
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]
