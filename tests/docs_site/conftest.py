"""The site, built once a session by the command of a release."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.instance import BASE_DIR

_BUILD = "uv run --isolated --quiet --no-dev --group docs python -m docs.site"
"""As in .ci/release."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("docs") / "built"
    completed = subprocess.run(
        [*_BUILD.split(), str(folder)], cwd=BASE_DIR, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    yield folder
