"""Errors that a browser reports: blocked scripts and styles, exceptions, missing files."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page


def complaints(page: "Page") -> list[str]:
    """A list that grows with every complaint about the tab's pages from now on."""
    heard: list[str] = []

    def hear(message: "ConsoleMessage") -> None:
        # A request that a newer one replaces (hx-sync) is aborted, and htmx says so.
        if message.type in {"error", "warning"} and "signal is aborted" not in message.text:
            heard.append(f"{message.text} {message.location}")

    page.on("console", hear)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard
