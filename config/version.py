"""The version of Tooltrail."""

import importlib.metadata
import tomllib

from config.instance import BASE_DIR, IS_CHECKOUT


def _version() -> str:
    if not IS_CHECKOUT:
        return importlib.metadata.version("tooltrail-server")
    return str(tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"])


VERSION: str = _version()
