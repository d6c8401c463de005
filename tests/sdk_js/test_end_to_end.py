"""An executor in JavaScript, the web server and the browser: the README's call is on the page."""

import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.factories import Cast, make_ingest_key
from tests.support.installation import clean_environment
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

pytestmark = pytest.mark.slow


@pytest.fixture
def project(js_sdk: Path, tmp_path: Path) -> Path:
    """A folder in which the package is installed."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "tooltrail").symlink_to(js_sdk)
    return tmp_path


def test_readme_example_is_shown_on_its_page(
    acme: Cast, live_server: LiveServer, page: Page, project: Path, js_sdk: Path
) -> None:
    block = re.search(r"^```js\n(.*?)^```$", (js_sdk / "README.md").read_text(), re.M | re.S)
    assert block is not None
    (project / "example.mjs").write_text(block[1])
    environment = clean_environment(
        TOOLTRAIL_URL=live_server.url,
        TOOLTRAIL_API_KEY=make_ingest_key(acme.tenant),
        TOOLTRAIL_SPOOL_DIR=str(project / "spool"),
        TOOLTRAIL_EXIT_TIMEOUT="30",
    )
    run = subprocess.run(
        ["node", "example.mjs"], cwd=project, env=environment, capture_output=True, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, b"")

    sign_in(page, acme.admin)
    page.goto("/calls/?q=tool:get_weather agent:concierge")
    page.get_by_role("link", name="get_weather").first.click()
    expect(page.get_by_role("main")).to_contain_text("London")
    expect(page.get_by_role("main")).to_contain_text("21.5")


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("main.cjs", 'const { Trail, VERSION } = require("tooltrail");'),
        ("main.mjs", 'import { Trail, VERSION } from "tooltrail";'),
    ],
)
def test_package_is_both_kinds_of_module(project: Path, name: str, load: str) -> None:
    code = f"{load} new Trail(); console.log(VERSION)"
    (project / name).write_text(code)
    environment = clean_environment(NODE_NO_WARNINGS="1")
    run = subprocess.run(
        ["node", name], cwd=project, env=environment, capture_output=True, text=True, timeout=60
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, "0.1.0\n", "")
