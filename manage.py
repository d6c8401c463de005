#!/usr/bin/env python
"""Tooltrail's command line: `manage.py up --demo` starts everything."""

import os
import sys

from config import instance, operators
from config.env import EnvironmentVariableError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        if sys.argv[1:2] in (["up"], ["restore"]):
            instance.ensure_secrets()  # before the settings are read: they hold them
        operators.run(sys.argv)
    except EnvironmentVariableError as error:
        sys.exit(f"tooltrail: {error}")
