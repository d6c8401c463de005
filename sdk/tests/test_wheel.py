"""The wheel, built and installed alone: complete, typed, without the server."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import asyncio, importlib.util, logging, sys
from pathlib import Path

from pydantic import BaseModel

import tooltrail
from tooltrail.contracts import ToolResult, returns_tool_output
from tooltrail.guard import ValidationError, guard
from tooltrail.testing import MemoryTrail
from tooltrail.tools import Tool

assert Path(tooltrail.__file__).is_relative_to(sys.prefix), tooltrail.__file__
for name in ("django", "psycopg", "ninja", "pytest", "config"):
    assert importlib.util.find_spec(name) is None, name

age = {"type": "object", "properties": {"age": {"type": "number"}}, "required": ["age"]}
logging.getLogger("tooltrail.guard").setLevel(logging.ERROR)
assert guard(lambda: {"age": "42"}, age, on_invalid="coerce-and-warn")() == {"age": 42}
try:
    guard(lambda: {}, age)()
except ValidationError as error:
    assert error.violations[0].code == "MISSING_REQUIRED"
else:
    raise AssertionError("missing age went through")

class Question(BaseModel):
    text: str

class Answer(BaseModel):
    text: str

@returns_tool_output
def answer(question: Question) -> Answer:
    return Answer(text=question.text.upper())

assert isinstance(answer(Question(text="why")), ToolResult)

# Both, recorded.
memory = MemoryTrail()
tool = Tool.from_function(lambda city="London": city, name="echo", description="Say it again")
assert asyncio.run(tool.executor(memory.context("turn-1"))({})) == "London"
assert memory.tool(answer)(Question(text="how")).data.text == "HOW"
assert [event["type"] for event in memory.events] == ["toolExecutionStart", "toolExecutionEnd"] * 2
assert memory.models

# A real trail to nowhere: the call goes on, its events wait.
trail = tooltrail.Trail("http://127.0.0.1:9", "key", spool="memory", exit_timeout=0.1)
logging.disable()
assert trail.tool(lambda: 1, name="one")() == 1
assert trail.stats().waiting == 2
print("works")
"""


def run(*command: str | Path, **environment: str) -> str:
    """Run a command in the repository. Returns what it printed; fails with what it said."""
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def uv() -> str:
    """The uv that runs this session, or the one on the path."""
    program = os.environ.get("UV") or shutil.which("uv")
    assert program, "the wheel is built with uv, which is not on the path"
    return program


@pytest.fixture(scope="module")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK's wheel, built in a folder of its own."""
    folder = tmp_path_factory.mktemp("dist")
    run(uv, "build", "--package", "tooltrail", "--wheel", "--out-dir", folder)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_contains_every_module_the_licence_and_the_type_marker(wheel: Path) -> None:
    source = ROOT / "sdk" / "src"
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}

    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        fields = archive.read(metadata).decode()
        licence = archive.read(metadata.replace("METADATA", "licenses/LICENSE"))

    assert modules <= names
    assert "tooltrail/py.typed" in names
    assert not [name for name in names if not name.startswith("tooltrail")]
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert "License-Expression: Apache-2.0" in fields
    assert (ROOT / "sdk" / "README.md").read_text().strip() in fields


@pytest.mark.slow
def test_wheel_works_in_its_own_environment(uv: str, wheel: Path, tmp_path: Path) -> None:
    """Only what the wheel itself asks for is installed, in the versions this session runs with."""
    environment = tmp_path / "venv"
    # From the lock file, whose wheels this session's own installation left in uv's cache.
    run(
        *(uv, "sync", "--frozen", "--package", "tooltrail", "--no-default-groups"),
        *("--no-install-workspace",),
        UV_PROJECT_ENVIRONMENT=str(environment),
    )
    run(uv, "pip", "install", "--offline", "--no-deps", "--python", environment, wheel)
    run(uv, "pip", "check", "--python", environment)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    output = run(environment / "bin" / "python", "-I", "-W", "error", script)

    assert output == "works\n"
