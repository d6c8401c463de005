"""The commands of `manage.py`: ours, and those of Django's that an installation needs.

The others of Django would empty a ledger (`flush`), write without it (`loaddata`), or start a
server that is no installation (`runserver`). They exit with an error that names the replacement.
"""

import platform
import sys
from collections.abc import Sequence

import django
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import BaseCommand

from config.instance import COMMAND
from config.process import interrupts
from config.version import VERSION

OURS = ("config", "audit", "tools_registry", "tenants")
FOR_OPERATORS = ("check", "showmigrations")
FOR_DEVELOPERS = ("collectstatic", "makemigrations", "shell", "sqlmigrate")
INSTEAD = {
    "createsuperuser": f"use `{COMMAND} tenant create NAME --admin USERNAME`",
    "dbshell": "use `psql` with DATABASE_URL",
    "dumpdata": f"use `{COMMAND} backup FILE`",
    "flush": f"use `{COMMAND} tenant delete SLUG`, which deletes one tenant",
    "loaddata": f"use `{COMMAND} restore FILE`",
    "runserver": f"use `{COMMAND} up`",
    "sqlflush": f"use `{COMMAND} tenant delete SLUG`, which deletes one tenant",
    "test": "use `uv run pytest`",
    "testserver": f"use `{COMMAND} up --dev-tenant NAME`",
}
_USAGE_ERROR = 2


class CommandLine(ManagementUtility):
    """Django's command line without the commands that do not fit Tooltrail."""

    def execute(self) -> None:
        """Run the command, or print the version. Raises SystemExit."""
        if "--version" in self.argv[1:] or self.argv[1:] == ["version"]:
            sys.stdout.write(
                f"Tooltrail {VERSION} (Python {platform.python_version()},"
                f" Django {django.get_version()})\n"
            )
            return
        super().execute()

    def main_help_text(self, commands_only: bool = False) -> str:
        """Return the list of commands, grouped by audience."""
        groups = {
            "Commands": _ours(),
            "Django commands for operators": FOR_OPERATORS,
            "Django commands for developers": FOR_DEVELOPERS,
        }
        if commands_only:
            return "\n".join(name for names in groups.values() for name in names)
        lines = [f"Run {COMMAND} COMMAND --help for help on a command, --version for the version."]
        for title, names in groups.items():
            lines += ["", f"{title}:", *(f"  {name}" for name in names)]
        return "\n".join(lines)

    def fetch_command(self, subcommand: str) -> BaseCommand:
        """Return the command. Raises SystemExit for one that only Django has."""
        known = {*_ours(), *FOR_OPERATORS, *FOR_DEVELOPERS}
        if subcommand in get_commands() and subcommand not in known:
            instead = INSTEAD.get(subcommand, f"see `{COMMAND} help`")
            sys.stderr.write(f"tooltrail: {COMMAND} {subcommand} is not available: {instead}\n")
            sys.exit(_USAGE_ERROR)
        command = super().fetch_command(subcommand)
        interrupts.raise_again()
        return command


def _ours() -> Sequence[str]:
    return sorted(name for name, app in get_commands().items() if app in OURS)


def run(argv: list[str]) -> None:
    """Run the command in `argv`. Raises SystemExit."""
    CommandLine(argv).execute()
