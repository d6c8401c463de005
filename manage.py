#!/usr/bin/env python
"""Tooltrail's command line: `manage.py up --demo` starts everything.

The wheel contains this file as `tooltrail_server.manage`, beside `config`, `audit` and the others,
and installs it as the command `tooltrail-server`.
"""

import os
import sys


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


def run() -> None:
    """Run `main`. Ctrl-C ends with exit code 130. The wheel's entry point."""
    try:
        # Imported here: even these take a tenth of a second, and Ctrl-C may come meanwhile.
        from pathlib import Path

        if __package__:  # imported from the wheel; run as a script, Python puts this folder there
            sys.path.insert(0, str(Path(__file__).resolve().parent))
        from config.process import interrupts

        interrupts.exit_at_once()
        main()
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one while the interpreter ends
        from config.process import interrupts

        sys.stderr.write(interrupts.MESSAGE)
        sys.exit(interrupts.EXIT_CODE)


if __name__ == "__main__":
    run()
