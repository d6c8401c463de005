"""The workflows of docs/check.md in a git repository, against a server with stored calls."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tooltrail.cli.check.definitions import read_file

from tests.support.api_client import program
from tests.support.check_command import Checker, make_checker
from tests.support.documents import ROOT
from tests.support.factories import make_call, make_cast, send_events
from tests.support.server import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.sampled("tooltrail check", 2)]

DOCUMENT = (ROOT / "docs" / "check.md").read_text()
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "additionalProperties": False,
}
UNITS = {"type": "string", "enum": ["C", "F"]}
WITH_UNITS = SCHEMA | {"properties": {**SCHEMA["properties"], "units": UNITS}}
BREAKING = WITH_UNITS | {"required": ["units"]}

MODULE = '''
from tooltrail import Trail

trail = Trail()


@trail.tool
def get_weather({parameters}) -> dict[str, float]:
    """Tells the weather."""
    return {{"celsius": 20.0}}
'''


def block(language: str) -> str:
    """The only block of the document in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    return str(text)


def git(folder: Path, *words: str) -> None:
    """Run git, whatever the user has configured."""
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, files: dict[str, str]) -> None:
    """Write files and commit them."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-m", "Change the tools")


def tool_file(schema: Any) -> dict[str, str]:
    """The file of the tool with this input schema."""
    definition = {"name": "get_weather", "description": "Tells.", "inputSchema": schema}
    return {"tools/get_weather.json": json.dumps({"tools": [definition]}, indent=2)}


@pytest.fixture
def checker(live_server: LiveServer, tmp_path: Path) -> Checker:
    """A clone on a branch, whose tool is published and was called."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init", "--initial-branch=main")
    commit(origin, tool_file(SCHEMA) | {"README.md": "Tools."})
    git(tmp_path, "clone", str(origin), str(clone))
    git(clone, "checkout", "-b", "units")
    cast = make_cast("acme")
    definitions = [each.content for each in read_file(clone / "tools" / "get_weather.json")]
    program(cast.tenant).do("registry?as=published&reason=first", definitions)
    for city in ("London", "Paris"):
        send_events(cast.tenant, make_call(tool_name="get_weather", args={"city": city}))
    return make_checker(live_server, cast, clone)


def test_script_fails_on_the_breaking_change_and_passes_on_the_mended_one(
    checker: Checker,
) -> None:
    script = ["sh", "-c", block("sh"), "check-tools.sh"]

    def run() -> "subprocess.CompletedProcess[str]":
        return checker.finish(checker.start_any(script, PATH=PATH))

    commit(checker.folder, {"README.md": "More tools."})
    untouched = run()
    assert (untouched.returncode, untouched.stdout) == (0, "No tool has changed.\n")

    commit(checker.folder, tool_file(BREAKING))
    broken = run()
    assert broken.returncode == 1, broken.stderr
    assert "✗ breaks-callers" in broken.stdout
    assert "2 stored calls" in broken.stdout
    assert "<failure" in (checker.folder / "check.xml").read_text()

    commit(checker.folder, tool_file(WITH_UNITS))
    mended = run()
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert "✗" not in mended.stdout
    assert "2 stored calls replayed" in mended.stdout


def test_workflow_fails_on_the_breaking_change_and_passes_on_the_mended_one(
    checker: Checker,
) -> None:
    workflow = YAML(typ="safe").load(block("yaml"))
    steps = workflow["jobs"]["check"]["steps"]
    (step,) = (one for one in steps if "tooltrail check" in one.get("run", ""))
    assert set(step["env"]) == {"TOOLTRAIL_URL", "TOOLTRAIL_API_KEY"}
    command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]  # as the runner does

    def run() -> int:
        return checker.finish(checker.start_any(command, PATH=PATH)).returncode

    commit(checker.folder, tool_file(BREAKING))
    assert run() == 1
    results = json.loads((checker.folder / "check.sarif").read_text())["runs"][0]["results"]
    errors = [one for one in results if one["level"] == "error"]
    assert {one["ruleId"] for one in errors} == {"breaks-callers", "new-violations"}
    place = errors[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "tools/get_weather.json"
    commit(checker.folder, tool_file(WITH_UNITS))
    assert run() == 0


def test_module_fails_on_the_breaking_change_and_passes_on_the_mended_one(
    checker: Checker,
) -> None:
    """A parameter without a default breaks the calls that lack it."""

    def change(parameters: str) -> None:
        commit(checker.folder, {"weather/tools.py": MODULE.format(parameters=parameters)})

    change("city: str")
    code = (
        "import json, weather.tools as t; from tooltrail.announcement import announcement_of as a"
    )
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}; print(json.dumps(a(t.get_weather).body()))"],
        cwd=checker.folder,
        check=True,
        capture_output=True,
        text=True,
    )
    announced = json.loads(printed.stdout) | {"on_collision": "replace"}
    del announced["digest"]
    program(checker.cast.tenant).do("tools", {"tools": [announced]})
    words = ("--module", "weather.tools", "--json")
    change("city: str, units: str")
    broken = checker.check(*words)
    assert broken.returncode == 1, broken.stderr
    (tool,) = json.loads(broken.stdout)["tools"]
    assert tool["replay"]["newly_violating"] == 2
    change("city: str, units: str = 'C'")
    mended = checker.check(*words)
    assert mended.returncode == 0, mended.stdout
