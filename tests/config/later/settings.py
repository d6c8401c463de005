"""Settings of a version that has one migration more."""

from config.settings import *  # noqa: F403  all of them

MIGRATION_MODULES = {"audit": "tests.config.later.migrations"}
