"""`tooltrail check`: which definitions files have, and which files have none."""

import json
from pathlib import Path
from typing import Any

import pytest
from tooltrail.cli.check import definitions
from tooltrail.cli.check.definitions import (
    CheckError,
    Definition,
    in_parts,
    own_form,
    read_file,
)

OPENAI = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
MCP = {"name": "get_weather", "inputSchema": {"type": "object"}}


def read(folder: Path, content: Any, name: str = "tools.json") -> list[Definition]:
    """The definitions in a file with this content."""
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    (folder / name).write_text(text)
    return read_file(folder / name)


@pytest.mark.parametrize(
    ("document", "places"),
    [
        ([OPENAI, MCP], ["$[0]", "$[1]"]),
        ({"tools": [OPENAI]}, ["tools[0]"]),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}}, ["result.tools[0]"]),
        (MCP, ["$"]),
        ({"format": "tooltrail-registry", "version": 1, "tools": [{"name": "a"}]}, ["tools[0]"]),
    ],
)
def test_every_form_of_a_list_is_read(tmp_path: Path, document: Any, places: list[str]) -> None:
    path = tmp_path / "tools.json"
    known = read(tmp_path, document)
    assert [one.place for one in known] == [f"{path}: {place}" for place in places]
    assert [one.is_own for one in known] == ["format" in document] * len(places)


def test_a_definition_knows_its_line(tmp_path: Path) -> None:
    first, second = read(tmp_path, {"tools": [OPENAI, MCP]})
    lines = (tmp_path / "tools.json").read_text().splitlines()
    assert '"name": "search"' in lines[first.line - 1]
    assert '"name": "get_weather"' in lines[second.line - 1]
    yaml = "tools:\n  - inputSchema: {type: object}\n    name: search\n"
    (only,) = read(tmp_path, yaml, "tools.yaml")
    assert only.line == 3
    hostile = {"name": "a.*(b", "inputSchema": {}}
    assert [one.line for one in read(tmp_path, [MCP, hostile])] == [3, 9]


def test_yaml_is_read_as_json_is(tmp_path: Path) -> None:
    yaml = "- name: on\n  description: yes\n  inputSchema: {type: object, maxProperties: 3}\n"
    (only,) = read(tmp_path, yaml, "tools.yml")
    schema = {"type": "object", "maxProperties": 3}
    assert only.content == {"name": "on", "description": "yes", "inputSchema": schema}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("tools.json", "{", "invalid JSON"),
        ("tools.json", '{"tools": [NaN]}', "NaN is not JSON"),
        ("tools.json", "[" * 100_000, "nested too deeply"),
        ("tools.json", '{"tools": []}', "has no tools"),
        ("tools.json", "7" * 5_000, "invalid JSON"),
        ("tools.yaml", "a: [", "invalid YAML"),
        ("tools.yaml", "a: 2026-11-27", "date"),
        ("tools.yaml", "{1: a}", "the key 1 is not a text"),
        ("tools.yaml", "a: &a [*a]", "values"),
        pytest.param("tools.yaml", BOMB, "values", marks=pytest.mark.slow),
        ("tools.yaml", "a: !!python/object:os.system {}", "invalid YAML"),
        pytest.param("tools.yaml", "[" * 1_000, "nested too deeply", marks=pytest.mark.slow),
    ],
)
def test_unreadable_file_has_a_reason(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(CheckError, match=reason) as raised:
        read(tmp_path, text, name)
    assert "\n" not in str(raised.value)


def test_missing_long_and_binary_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CheckError, match="No such file"):
        read_file(tmp_path / "none.json")
    (tmp_path / "tools.json").write_bytes(b"\xff\xfe")
    with pytest.raises(CheckError, match="not UTF-8"):
        read_file(tmp_path / "tools.json")
    monkeypatch.setattr(definitions, "FILE_MAX_BYTES", 1)
    with pytest.raises(CheckError, match="more than 1 bytes"):
        read_file(tmp_path / "tools.json")


def test_bodies_hold_all_definitions_in_order_and_within_the_limits() -> None:
    own = [Definition("own", own_form({"name": "a", "input_schema": {}}), is_own=True)]
    given = [Definition(f"g{n}", {"name": f"t{n}", "description": "x" * 100}) for n in range(7)]
    parts = list(in_parts([*given, *own], 3, 500))
    assert [each for _, part in parts for each in part] == [*given, *own]
    assert [len(part) for _, part in parts] == [3, 3, 1, 1]
    for body, part in parts:
        document = json.loads(body)
        assert document["tools"] == [one.content for one in part]
        assert ("format" in document) == part[0].is_own
    assert [len(part) for _, part in in_parts(given, 50, 250)] == [1] * 7
