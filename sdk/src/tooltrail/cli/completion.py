"""`tooltrail completion`: scripts that complete commands and options in bash, zsh and fish.

Pure but for the command. The scripts are made of the command line itself and name everything, so
that no completion has to start Python.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_HINT = """\
how to use it:
  bash  tooltrail completion bash > ~/.local/share/bash-completion/completions/tooltrail
  zsh   tooltrail completion zsh > ~/.zfunc/_tooltrail      (a folder of $fpath)
  fish  tooltrail completion fish > ~/.config/fish/completions/tooltrail.fish"""


@dataclass(frozen=True, slots=True)
class Level:
    """What can follow some words: ` query calls`, or '' after the command's own name."""

    words: str
    commands: Mapping[str, str]
    """The next words with their help."""
    options: Mapping[str, str]
    """Long options with their help."""
    choices: tuple[str, ...] = ()
    """Values of an argument."""


def add_parser(verbs: Any, whole: argparse.ArgumentParser) -> None:
    """Add `completion` to the command line `whole`."""
    parser = verbs.add_parser(
        "completion",
        help="print a script that completes commands and options",
        description="Print a script that completes commands and options in a shell.",
        epilog=_HINT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=list(_SCRIPTS))
    parser.set_defaults(run=lambda options: _run(options, whole))


def script(whole: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell: bash, zsh or fish."""
    return _SCRIPTS[shell](list(_levels(whole, "")))


def _run(options: argparse.Namespace, whole: argparse.ArgumentParser) -> int:
    sys.stdout.write(script(whole, options.shell))
    return 0


def _levels(parser: argparse.ArgumentParser, words: str) -> Iterator[Level]:
    commands: dict[str, str] = {}
    options: dict[str, str] = {}
    choices: tuple[str, ...] = ()
    below: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            below = action.choices
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            commands = {name: helps.get(name, "") for name in below}
        elif action.option_strings:
            name = max(action.option_strings, key=len)
            options[name] = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
        elif action.choices is not None:
            choices = tuple(map(str, action.choices))
    yield Level(words, commands, options, choices)
    for name, one in below.items():
        yield from _levels(one, f"{words} {name}")


def _bash(levels: list[Level]) -> str:
    return f"""\
# Completion of tooltrail for bash.
_tooltrail() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" at="" word list=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $word" in
            {_known(levels)}) at="$at $word" ;;
        esac
    done
    case "$at" in
{_cases(levels, lambda level: f'list="{" ".join(_next(level))}"')}
    esac
    COMPREPLY=($(compgen -W "$list" -- "$current"))
}}
complete -o default -F _tooltrail tooltrail
"""


def _zsh(levels: list[Level]) -> str:
    return f"""\
#compdef tooltrail
# Completion of tooltrail for zsh.
_tooltrail() {{
    local at="" word
    local -a list
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$at $word" in
            {_known(levels)}) at="$at $word" ;;
        esac
    done
    case "$at" in
{_cases(levels, lambda level: f"list=({' '.join(_next(level))})")}
    esac
    compadd -- $list
    [[ "$PREFIX" == -* ]] || _files
}}
if [ "$funcstack[1]" = "_tooltrail" ]; then
    _tooltrail "$@"
else
    compdef _tooltrail tooltrail
fi
"""


def _fish(levels: list[Level]) -> str:
    known = " ".join(f"'{level.words}'" for level in levels if level.words)
    lines = [
        "# Completion of tooltrail for fish.",
        "function __tooltrail_at",
        "    set -l at ''",
        "    for word in (commandline -opc)[2..]",
        '        switch "$at $word"',
        f"            case {known}",
        '                set at "$at $word"',
        "        end",
        "    end",
        '    test "$at" = "$argv[1]"',
        "end",
    ]
    for level in levels:
        at = f"complete -c tooltrail -n \"__tooltrail_at '{level.words}'\""
        lines += [f"{at} -f -a {name} -d {_quoted(text)}" for name, text in level.commands.items()]
        lines += [f"{at} -f -a {choice}" for choice in level.choices]
        lines += [
            f"{at} -l {name.removeprefix('--')} -d {_quoted(text)}"
            for name, text in level.options.items()
        ]
    return "\n".join(lines) + "\n"


_SCRIPTS: Mapping[str, Callable[[list[Level]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _known(levels: list[Level]) -> str:
    return " | ".join(f'"{level.words}"' for level in levels if level.words)


def _cases(levels: list[Level], then: Callable[[Level], str]) -> str:
    return "\n".join(f'        "{level.words}") {then(level)} ;;' for level in levels)


def _next(level: Level) -> list[str]:
    return [*level.commands, *level.choices, *level.options]


def _quoted(text: str) -> str:
    text = text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
