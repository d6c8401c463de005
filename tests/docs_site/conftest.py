"""The site, of the release that `.ci/run` has built, or built once by the command of a release."""

import fcntl
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from config.instance import BASE_DIR

_BUILD = "uv run --isolated --quiet --no-dev --group docs python -m docs.site"
"""As in .ci/release."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, shared by the processes of `pytest -n 2`."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "docs" / "built"
    with (shared / "docs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists() and (release := os.environ.get("TEST_RELEASE")):
            _extract(Path(release), folder)
        elif not folder.exists():
            completed = subprocess.run(
                [*_BUILD.split(), str(folder)],
                cwd=BASE_DIR,
                capture_output=True,
                text=True,
                check=False,
            )
            assert completed.returncode == 0, completed.stderr
    return folder


def _extract(release: Path, folder: Path) -> None:
    """Copy the site out of the server's wheel."""
    inside = "tooltrail_server/docs/built/"
    (wheel,) = release.glob("tooltrail_server-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(inside):
                file = folder / name.removeprefix(inside)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))
