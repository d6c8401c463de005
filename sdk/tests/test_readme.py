"""The SDK's README: its examples run, and its tables agree with the code."""

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from tooltrail.events import ToolExecutionEnd
from tooltrail.guard import FailureStrategy
from tooltrail.settings import MIB, Settings

from sdk.tests.support.readme import Block, blocks, run

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text()


@blocks(README)
def test_examples_run_and_print_the_documented_output(
    block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = run(block, monkeypatch)

    if "trail" in block.code:
        ended = [event for event in events if isinstance(event, ToolExecutionEnd)]
        assert bool(ended) == bool(
            re.search(r"@trail.tool|_trail.tool|executor|record\(", block.code)
        )


def table(heading: str) -> list[str]:
    """The rows of the table that begins with this line."""
    rows = TEXT[TEXT.index(heading) :].split("\n\n")[0].splitlines()
    return rows[2:]


def in_words(default: object) -> str:
    match default:
        case None:
            return "none"
        case int() if default % MIB == 0:
            return f"{default // MIB} MiB"
        case int():
            return f"{default // 1024} KiB"
        case float():
            return f"{default:g}"
        case _:
            return f"`{default}`"


def test_options_table_matches_the_settings() -> None:
    options = [
        f"| `{option.name}` | `{option.metadata['env']}` | {in_words(option.default)} "
        f"| {option.metadata['doc']} |"
        for option in fields(Settings)
    ]

    assert table("| option | variable |") == options, "paste:\n" + "\n".join(options)


def test_strategies_table_lists_every_strategy() -> None:
    named = [row.split("`")[1] for row in table("| `on_invalid` |")]

    assert sorted(named) == sorted(get_args(FailureStrategy))


COMMANDS = [
    shlex.split(line.partition(" > ")[0], comments=True)
    for line in TEXT.splitlines()
    if line.startswith("tooltrail ")
]


@pytest.mark.generated(5)
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_documented_commands_are_accepted(command: list[str], tmp_path: Path) -> None:
    """Run where nothing waits and without a key: refused for that, not for its form."""
    ran = subprocess.run(
        [sys.executable, "-m", *command],
        env={"PATH": "", "TOOLTRAIL_SPOOL_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "usage:" not in ran.stderr
    if command[1] == "status":
        assert (ran.returncode, ran.stdout) == (0, "No events waiting.\n")
    elif command[1] == "completion":
        assert (ran.returncode, "complete" in ran.stdout) == (0, True)
    elif command[1] == "mcp":
        assert (ran.returncode, "mcpServers" in ran.stdout) == (0, True)
    elif command[1] == "verify":
        assert (ran.returncode, "cannot be checked" in ran.stderr) == (2, True)
    elif command[1] == "witness":
        assert (ran.returncode, "No such file" in ran.stderr) == (2, True)
    else:
        assert (ran.returncode, "TOOLTRAIL_API_KEY" in ran.stderr) == (2, True)


@pytest.mark.slow
def test_every_command_is_documented() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tooltrail", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    _, _, listed = ran.stdout.partition("<command>\n")
    verbs = re.findall(r"^ {4}(\w+)(?: |$)", listed, re.MULTILINE)

    assert {command[1] for command in COMMANDS} == set(verbs)
