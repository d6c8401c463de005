"""`tooltrail completion`: the scripts, and what bash makes of them."""

import re
import shutil
import subprocess

import pytest
from tooltrail.cli.main import main
from tooltrail.cli.views import VIEWS

BASH = shutil.which("bash")
SHELLS = {
    "bash": ("-n",),
    "zsh": ("-n",),
    "fish": ("--no-execute",),
}


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_script_names_every_command_and_is_valid(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    for name in ("status", "flush", "verify", "watch", "witness", *VIEWS):
        assert re.search(rf"\b{name}\b", text), name
    assert "follow" in text
    if program := shutil.which(shell):
        checked = subprocess.run([program, *SHELLS[shell]], input=text, text=True, check=False)
        assert checked.returncode == 0


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tooltrail ver", ["verify", "verify-record"]),
        ("tooltrail query ca", ["calls", "call"]),
        ("tooltrail query calls --fo", ["--follow"]),
        ("tooltrail query calls tool:search --fo", ["--follow"]),
        ("tooltrail completion z", ["zsh"]),
        ("tooltrail send --json /tmp/nothing", []),
    ],
)
def test_bash_completes(line: str, expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = " ".join(f"'{word}'" for word in line.split())
    asked = (
        f"{script('bash', capsys)}\nCOMP_WORDS=({words})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_tooltrail\n[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    assert BASH is not None
    answer = subprocess.run(
        [BASH, "--norc", "-u", "-c", asked], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == expected


def test_unknown_shell_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "cmd"])
    assert ended.value.code == 2
