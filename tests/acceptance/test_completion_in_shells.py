"""`tooltrail completion` in real shells: what zsh and fish offer after some words and Tab."""

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import debian

TOOLTRAIL = Path(sys.executable).with_name("tooltrail")
LINES = {
    "tooltrail ver": ["verify", "verify-record"],
    "tooltrail query ca": ["call", "calls"],
    "tooltrail query calls --fo": ["--follow"],
    "tooltrail query calls tool:search --fo": ["--follow"],
    "tooltrail completion z": ["zsh"],
    "tooltrail send --js": ["--json"],
}
_ZSHRC = """\
fpath=({functions} $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {{
    local -a hits
    builtin compadd -O hits "$@"
    (( $#hits )) && print -rl -- $hits >> {offered}
    builtin compadd "$@"
}}
leave() {{ exit }}
zle -N leave
bindkey '^I' complete-word '^X' leave
PROMPT='ready> '
"""
"""Zsh as a person has it, which writes down what is offered. Ctrl-X ends it."""


def offered_by_zsh(program: str, script: str, line: str, folder: Path) -> list[str]:
    """What zsh offers on a terminal: the line is typed when its prompt is there, then Tab."""
    functions, offered = folder / "functions", folder / "offered"
    functions.mkdir()
    (functions / "_tooltrail").write_text(script)
    names = {"functions": shlex.quote(str(functions)), "offered": shlex.quote(str(offered))}
    (folder / ".zshrc").write_text(_ZSHRC.format(**names))
    offered.touch()
    environment = {"ZDOTDIR": str(folder), "HOME": str(folder), "TERM": "dumb"}
    terminal, its_end = pty.openpty()
    try:
        shell = subprocess.Popen(
            [program, "-d", "-i"],
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            cwd=functions,
            env=environment | {"PATH": os.environ["PATH"]},
            start_new_session=True,
        )
        os.close(its_end)
        _type(terminal, f"{line}\t\x18")
        assert shell.wait(120) == 0
    finally:
        os.close(terminal)
    return offered.read_text().split()


def offered_by_fish(program: str, script: str, line: str, folder: Path) -> list[str]:
    """What fish offers, each before its description."""
    (folder / "tooltrail.fish").write_text(script)
    asked = f"source tooltrail.fish; complete -C {shlex.quote(line)}"
    environment = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    answer = subprocess.run(
        [program, "-N", "-c", asked],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stderr == ""
    return [one.partition("\t")[0] for one in answer.stdout.splitlines() if one]


def _type(terminal: int, keys: str) -> None:
    """Type when the prompt is there, and read what the shell writes until it ends."""
    seen, is_typed = b"", False
    while True:
        try:
            some = os.read(terminal, 4096)
        except OSError:  # the shell has closed its end
            break
        if not some:
            break
        seen += some
        if not is_typed and b"ready> " in seen:
            os.write(terminal, keys.encode())
            is_typed = True
    assert is_typed, f"no prompt: {seen!r}"


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize(
    ("shell", "offered"), [("zsh", offered_by_zsh), ("fish", offered_by_fish)], ids=["zsh", "fish"]
)
def test_shell_offers_commands_and_options(
    shell: str, offered: Callable[[str, str, str, Path], list[str]], tmp_path: Path
) -> None:
    program = f"/usr/bin/{shell}"
    if not Path(program).exists() and os.getuid() != 0:
        pytest.skip(f"{shell} is missing, and only root can install it")
    debian.need(shell, program)
    asked = [str(TOOLTRAIL), "completion", shell]
    script = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    for number, (line, expected) in enumerate(LINES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert sorted(offered(program, script, line, folder)) == expected, line
