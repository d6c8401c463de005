"""docs/frameworks agrees with the adapters in JavaScript and with the scripts that are run."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from config.instance import BASE_DIR

PAGES = BASE_DIR / "docs" / "frameworks"
SCRIPTS = BASE_DIR / "sdk-js" / "test" / "frameworks"
ADAPTERS = {
    "adk": "adk",
    "ai": "vercel-ai",
    "langchain": "langchain",
    "mastra": "mastra",
    "mcp": "mcp",
    "openai-agents": "openai-agents",
}
"""The page of each adapter."""


def test_every_adapter_has_a_page_and_a_row() -> None:
    exports = json.loads((BASE_DIR / "sdk-js" / "package.json").read_text())["exports"]
    assert {name.removeprefix("./") for name in exports} - {".", "package.json"} == set(ADAPTERS)
    overview = (PAGES / "README.md").read_text()
    for adapter, page in ADAPTERS.items():
        assert re.search(rf"\({page}\.md[^)]*\) \| `tooltrail/{adapter}` \|", overview)


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_page_shows_what_is_tested(js_sdk: Path, adapter: str) -> None:
    """The program is JavaScript, uses the adapter's names, and the page says what was tested."""
    text = (PAGES / f"{ADAPTERS[adapter]}.md").read_text()
    [program] = re.findall(r"^```js\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    checked = subprocess.run(
        ["node", "--input-type=module", "--check", "-"],
        input=program,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
    [names] = re.findall(rf'^import {{ (.+) }} from "tooltrail/{adapter}";$', program, re.MULTILINE)
    exported = subprocess.run(
        ["node", "-p", f"Object.keys(require('tooltrail/{adapter}')).join(', ')"],
        cwd=js_sdk,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(names.split(", ")) <= set(exported.stdout.strip().split(", "))
    used = program.partition('";\n\n')[2]
    assert all(re.search(rf"\b{name}\b", used) for name in names.split(", "))
    if adapter != "adk":
        assert (
            f'import {{ {names} }} from "tooltrail/{adapter}";'
            in (SCRIPTS / adapter / "run.mjs").read_text()
        )
        pins = json.loads((SCRIPTS / adapter / "package.json").read_text())["dependencies"]
        assert any(f"{package} {version}" in text for package, version in pins.items())
