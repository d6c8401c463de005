"""A person with a keyboard alone, and what a screen reader is told of a page."""

from itertools import pairwise
from typing import Any

from playwright.sync_api import Locator, Page, expect

TABS_MAX = 160
"""Tab stops of the longest page, its navigation included."""
_INTERACTIVE = {
    *("button", "checkbox", "combobox", "link", "listbox", "menuitem", "radio", "searchbox"),
    *("slider", "spinbutton", "switch", "tab", "textbox", "DisclosureTriangle"),
}
_REGIONS = {"main", "navigation", "region", "search", "form", "dialog"}


class Keyboard:
    """Goes through a page by keys. No method clicks, hovers or sets a focus by script."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def skip_navigation(self) -> None:
        """From the top of a page into its content, by the first link of the page."""
        self.page.keyboard.press("Tab")
        expect(self.page.get_by_role("link", name="Skip to content")).to_be_focused()
        self.page.keyboard.press("Enter")

    def to(self, target: Locator, *, key: str = "Tab") -> None:
        """Press Tab until the target has the focus. Fails if it never has."""
        target = target.first
        expect(target).to_be_visible()
        for _ in range(TABS_MAX):
            if target.evaluate("it => it === document.activeElement"):
                expect(target).to_be_in_viewport()
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"no Tab leads to {target}")

    def enter(self, target: Locator) -> None:
        """Go to a link, button or fold, and press Enter."""
        self.to(target)
        self.page.keyboard.press("Enter")

    def write(self, target: Locator, text: str) -> None:
        """Go to a field and replace its text."""
        self.to(target)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)


def spoken(page: Page) -> list[dict[str, Any]]:
    """The nodes of Chromium's accessibility tree in reading order: role, name, properties."""
    session = page.context.new_cdp_session(page)
    tree: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    by_id = {node["nodeId"]: node for node in tree}
    nodes: list[dict[str, Any]] = []
    waiting = [tree[0]["nodeId"]]
    while waiting:
        node = by_id[waiting.pop()]
        nodes.append(node)
        waiting += [each for each in reversed(node.get("childIds", ())) if each in by_id]
    return [
        {
            "role": node["role"]["value"],
            "name": node.get("name", {}).get("value", ""),
            "description": node.get("description", {}).get("value", ""),
            **{one["name"]: one["value"].get("value") for one in node.get("properties", ())},
        }
        for node in nodes
        if not node["ignored"] and "role" in node
    ]


def unspoken(page: Page) -> list[str]:
    """What a screen reader cannot tell of a page: controls without a name, a page without parts."""
    nodes = spoken(page)
    roles = [node["role"] for node in nodes]
    nameless = [
        f"a {node['role']} without a name"
        for node in nodes
        if node["role"] in _INTERACTIVE and not str(node["name"]).strip()
    ]
    missing = [
        f"{roles.count(role)} of the role {role}, not one"
        for role in ("main", "banner")
        if roles.count(role) != 1
    ]
    headings = [node for node in nodes if node["role"] == "heading"]
    if sum(node.get("level") == 1 for node in headings) != 1:
        missing.append("not one heading of the first level")
    steps = [(str(node["name"]), int(node.get("level") or 0)) for node in headings]
    skipped = [
        f"the heading {name!r} of level {after} follows one of level {before}"
        for (_, before), (name, after) in pairwise(steps)
        if after > before + 1
    ]
    return [*nameless, *missing, *skipped]
