"""Its settings."""

from config.settings import *  # noqa: F403  all of them

MIGRATION_MODULES = {"audit": "tests.config.later.migrations"}
