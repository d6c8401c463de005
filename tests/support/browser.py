"""Chromium, Playwright and axe for browser tests; the session ends if one cannot be installed.

Playwright is not among the installed packages: it and the browser driver in it are half as
large as all the rest (docs/adr/0004). The first browser test that is collected fetches it, and
with it axe-core, in a package that holds its script.
"""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_FETCH_TIMEOUT_S = 600
# The shell draws the same pages and needs half the processor time: it has no windows and tabs.
_NAMES = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable", "chrome"),
)
_MAC_PATHS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def uses_playwright(module: Path) -> bool:
    """Whether a test module names Playwright, so that it must be there before the import."""
    return "playwright" in module.read_text()


def ensure_playwright() -> None:
    """Install Playwright and axe into this environment if missing, or end the session."""
    if all(importlib.util.find_spec(name) for name in ("playwright", "axe_playwright_python")):
        return
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    pins = {pin.partition("==")[0]: pin for pin in project["tool"]["uv"]["constraint-dependencies"]}
    packages = [pins[name] for name in ("playwright", "greenlet", "axe-playwright-python")]
    uv = os.environ.get("UV") or shutil.which("uv")
    installer = (
        [uv, "pip", "install", "--python", sys.executable]
        if uv
        else [sys.executable, "-m", "pip", "install"]
    )
    _fetch("Playwright", [*installer, *packages])
    importlib.invalidate_caches()


def find_chromium() -> str:
    """The path of a Chromium, installed if there is none. Ends the session if it cannot be."""
    if (chromium := _installed_chromium()) is not None:
        return chromium
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _fetch("Chromium", ["apt-get", "update", "-qq"])
        package = ["--no-install-recommends", "chromium-headless-shell"]
        _fetch("Chromium", ["apt-get", "install", "-y", "-qq", *package])
    else:
        _fetch("Chromium", [sys.executable, "-m", "playwright", "install", "chromium"])
    if (chromium := _installed_chromium()) is None:
        pytest.exit("browser tests: Chromium was installed and is not found", returncode=3)
    return chromium


def _installed_chromium() -> str | None:
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    for path in _MAC_PATHS:
        if Path(path).exists():
            return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def _fetch(what: str, command: list[str]) -> None:
    try:
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_TIMEOUT_S,
            check=False,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        reason = completed.stderr.strip().rsplit("\n", 1)[-1] if completed.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if reason is not None:
        pytest.exit(
            f"browser tests need {what}; `{' '.join(command)}` failed: {reason}", returncode=3
        )
