"""`tooltrail check --module`: which tools a module has, and that a check publishes none."""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tooltrail.announcement import announcement_of
from tooltrail.cli.check.definitions import CheckError, Definition
from tooltrail.cli.check.modules import read_module
from tooltrail.cli.main import main

from sdk.tests.support.ingest_server import Server

_NUMBERS = itertools.count()

type Read = Callable[[str], list[Definition]]

TOOLS = '''
from functools import partial

from tooltrail import Trail
from tooltrail.guard import guard
from tooltrail.tools import Tool, ToolRegistry

trail = Trail()
print("imported")


@trail.tool(version="7", trusted=True, meta={"team": "maps"}, output_schema={"type": "object"})
def get_weather(city: str, days: int = 1) -> dict:
    """Tells the weather.

    Args:
        city: Where.
    """
    return {}


same = get_weather


@trail.tool
async def stream(text: str):
    yield text


class Maps:
    @trail.tool
    def route(self, to: str) -> str:
        """Finds a route."""
        return to

    @staticmethod
    @trail.tool(name="distance")
    def measure(a: str) -> int:
        return 1


near = trail.tool(partial(get_weather, days=2), name="near")
guarded = guard(get_weather, {"type": "object"})


def search(query: str) -> str:
    """Searches."""
    return query


search_tool = Tool.from_function(search)
registry = ToolRegistry([search_tool])


def no_tool(x: int) -> int:
    return x
'''


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Write a module in the current folder, and read it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def written(text: str) -> list[Definition]:
        name = f"checked_tools_{next(_NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(text)
        return read_module(name)

    return written


def contract(definition: Definition) -> dict[str, Any]:
    """The only version."""
    (version,) = definition.content["versions"]
    return {"name": definition.content["name"], **version}


def test_tools_of_a_module_are_read(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    definitions = read(TOOLS)
    names = sorted(contract(one)["name"] for one in definitions)
    assert names == ["distance", "get_weather", "near", "route", "search", "stream"]
    weather = next(one for one in definitions if contract(one)["name"] == "get_weather")
    assert weather.is_own
    members = contract(weather)
    assert members["description"] == "Tells the weather."
    assert members["input_schema"]["properties"]["city"]["description"] == "Where."
    assert members["output_schema"] == {"type": "object"}
    assert (members["trusted"], members["meta"]) == (True, {"team": "maps"})
    assert weather.file is not None
    assert not weather.file.is_absolute()
    line = weather.file.read_text().splitlines()[weather.line - 1]
    assert line.startswith("@trail.tool(version")
    assert capsys.readouterr().out == ""  # what the module prints is not in the report


def test_digest_is_that_of_the_announced_contract(read: Read) -> None:
    for definition in read(TOOLS):
        members = contract(definition)
        assert members["digest"].startswith("sha256:")
    assert announcement_of(len) is None
    assert announcement_of([]) is None


def test_import_has_no_server(
    read: Read, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLTRAIL_URL", server.url)
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_key")
    monkeypatch.setenv("TOOLTRAIL_SPOOL_DIR", str(tmp_path / "spool"))
    read(f"{TOOLS}\ntrail.announce([search_tool])\nget_weather('London')\ntrail.close()\n")
    assert server.requests == []
    assert os.environ["TOOLTRAIL_API_KEY"] == "tt_key"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1", "has no tools"),
        ("raise RuntimeError('a\\nb')", "RuntimeError: a b"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("import no_such_module_at_all", "ModuleNotFoundError"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_module_that_cannot_be_read_has_a_reason(read: Read, text: str, reason: str) -> None:
    with pytest.raises(CheckError, match=reason) as raised:
        read(text)
    assert "\n" not in str(raised.value)


def test_report_of_a_module_is_alone_on_standard_output(
    read: Read, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLTRAIL_URL", server.url)
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_key")

    def new(request: Any) -> Any:
        tools = [
            {
                "name": one["name"],
                "path": "",
                "status": "new",
                "tool_id": None,
                "version": None,
                "callers": None,
                "consumers": None,
                "changes": [],
                "change_count": 0,
                "problems": [],
                "notes": [],
            }
            for one in json.loads(request.body)["tools"]
        ]
        return 200, {"note": "", "tools": tools}, {}

    server.plan = new
    Path("tools_of_report.py").write_text(TOOLS)
    assert main(["check", "--module", "tools_of_report", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["new"] == 6
    (request,) = server.requests
    assert request.path == "/api/v1/registry/compare"
