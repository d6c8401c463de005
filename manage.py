#!/usr/bin/env python
"""Tooltrail's command line: `manage.py up --demo` starts everything."""

import os
import signal
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command. Raises SystemExit with one line for the environment's mistakes."""
    # Imported here: they take seconds on a busy machine, and Ctrl-C may come meanwhile.
    from config import instance
    from config.env import EnvironmentVariableError

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        if sys.argv[1:2] in (["up"], ["restore"]):
            instance.ensure_secrets()  # before the settings are read: they hold them
        from config.process import operators

        operators.run(sys.argv)
    except EnvironmentVariableError as error:
        sys.exit(f"tooltrail: {error}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one while the interpreter ends
        sys.stderr.write("\ntooltrail: interrupted\n")
        sys.exit(INTERRUPTED)
