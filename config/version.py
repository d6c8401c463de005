"""The version of Tooltrail."""

import tomllib

from config.instance import BASE_DIR

VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
