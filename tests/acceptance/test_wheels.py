"""The wheels that `.ci/release` builds, in an empty environment without the checkout."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from config.instance import BASE_DIR
from tests.support.installation import clean_environment
from tests.support.no_network import without_network

pytestmark = pytest.mark.slow

USER = Path(__file__).parents[1] / "support" / "wheel_user.py"


@dataclass(frozen=True)
class Installed:
    """An environment with both wheels."""

    environment: Path

    @property
    def server(self) -> Path:
        return self.environment / "bin" / "tooltrail-server"

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"


def built(folder: Path) -> Path:
    subprocess.run([".ci/release", str(folder)], cwd=BASE_DIR, check=True)
    return folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's."""
    created = Path(tempfile.mkdtemp(prefix="tt-wheels-"))
    created.chmod(0o755)
    yield created
    shutil.rmtree(created)


@pytest.fixture(scope="module")
def release(folder: Path) -> Path:
    """The files of a release: those that `.ci/run` has built and tried, otherwise new ones."""
    if shared := os.environ.get("TEST_RELEASE"):
        return Path(shared)
    return built(folder / "release")


@pytest.fixture(scope="module")
def installed(release: Path, folder: Path) -> Installed:
    environment = folder / "environment"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, environment], check=True)
    install = ["uv", "pip", "install", "-q", "--python", environment, "--compile-bytecode"]
    files = ["--find-links", release, "--require-hashes", "-r", release / "requirements.txt"]
    subprocess.run([*map(str, (*install, *files))], cwd="/", check=True)
    return Installed(environment)


OUTSIDE = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/nonexistent"}
"""The environment of a user who has nothing of this checkout, and no home."""


@pytest.mark.sampled("installed wheels", 1)
def test_everything_works_from_the_wheels_without_network_and_home(
    installed: Installed, folder: Path
) -> None:
    user = os.geteuid()
    if user == 0:  # who may become somebody without rights
        user = pwd.getpwnam("nobody").pw_uid
    data = Path(tempfile.mkdtemp(dir=folder))
    os.chown(data, user, -1)
    script = folder / "wheel_user.py"
    shutil.copy(USER, script)
    command = [str(installed.python), "-I", str(script), str(installed.server), str(data)]
    completed = subprocess.run(
        without_network(command, user), cwd="/", env=OUTSIDE, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    answer: dict[str, Any] = json.loads(completed.stdout)
    assert answer.pop("sdk").startswith(str(installed.environment))
    assert answer.pop("style_bytes") > 10_000
    assert answer == {
        "version": version("pyproject.toml"),
        "user": user,
        "interfaces": ["lo"],
        "spooled": 1,
        "shown": True,
        "restored": True,
    }


def version(file: str) -> str:
    return str(tomllib.loads((BASE_DIR / file).read_text())["project"]["version"])


def test_server_needs_the_sdk_of_its_own_version() -> None:
    needed = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["dependencies"]
    assert version("pyproject.toml") == version("sdk/pyproject.toml")
    assert f"tooltrail=={version('sdk/pyproject.toml')}" in needed


@pytest.mark.sampled("installed wheels", 1)
def test_release_is_reproducible_and_names_no_registry(release: Path, folder: Path) -> None:
    again = built(folder / "again")
    names = sorted(path.name for path in release.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    for name in names:
        assert (again / name).read_bytes() == (release / name).read_bytes(), name
    for name in ("requirements.txt", "sbom.cdx.json", "SHA256SUMS"):
        assert "://" not in (again / name).read_text(), name
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=again, check=True)
    parts = {
        each["name"] for each in json.loads((again / "sbom.cdx.json").read_text())["components"]
    }
    assert {"django", "tooltrail", "psycopg"} <= parts


def test_release_contains_what_runs_and_no_more(release: Path) -> None:
    (server,) = release.glob("tooltrail_server-*.whl")
    (source,) = release.glob("tooltrail_server-*.tar.gz")
    (sdk,) = release.glob("tooltrail-*.whl")
    in_server = set(zipfile.ZipFile(server).namelist())
    tracked = subprocess.check_output(
        ["git", "ls-files", "audit", "config", "tenants", "tools_registry", "templates", "static"],
        cwd=BASE_DIR,
        text=True,
    ).split("\n")[:-1]
    assert {f"tooltrail_server/{path}" for path in tracked} <= in_server
    top = {name.split("/")[0] for name in in_server}
    assert {name.partition("-")[0] for name in top} == {"tooltrail_server"}
    built = {name for name in in_server if name.startswith("tooltrail_server/docs/built/")}
    assert "tooltrail_server/docs/built/start/auditor/index.html" in built
    assert not [name for name in in_server if name.startswith("tooltrail_server/docs/site/")]
    assert not [name for name in in_server - built if name.endswith((".pyc", ".png"))]
    assert not [name for name in in_server if "/tests/" in name]
    with tarfile.open(source) as archive:
        assert any(name.endswith("/pyproject.toml") for name in archive.getnames())
    in_sdk = set(zipfile.ZipFile(sdk).namelist())
    assert {"tooltrail/py.typed", "tooltrail/__init__.py"} <= in_sdk
    assert any(name.endswith("licenses/LICENSE") for name in in_sdk)


def calls(command: list[str], cwd: str, var: Path) -> int:
    """Start it on this folder; how many calls its tenant has."""
    environment = clean_environment(TOOLTRAIL_VAR=str(var))
    process = subprocess.Popen(
        [*command, "up", "--dev-tenant", "acme", "--json", "--port", "0"],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        facts = json.loads(process.stdout.readline())
        code = (
            "import json, sys, urllib.request as web\n"
            "from tooltrail import Trail\n"
            "url, key = sys.argv[1:]\n"
            "trail = Trail(url, key, spool='memory')\n"
            "trail.tool(lambda: 1, name='one')()\n"
            "assert trail.flush(30), trail.stats()\n"
            "request = web.Request(f'{url}/api/v1/summary?range=24h',"
            " headers={'Authorization': f'Bearer {key}'})\n"
            "print(json.load(web.urlopen(request))['calls'])\n"
        )
        python = [sys.executable, "-c", code, facts["url"], facts["api_key"]]
        return int(subprocess.check_output(python, env=environment))
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.sampled("installed wheels", 1)
def test_checkout_and_wheel_take_turns_on_the_same_data(installed: Installed, folder: Path) -> None:
    var = folder / "turns"
    checkout, wheel = [sys.executable, "manage.py"], [str(installed.server)]
    assert calls(checkout, str(BASE_DIR), var) == 1
    secrets = (var / "secrets.json").read_bytes()
    assert calls(wheel, "/", var) == 2
    assert calls(checkout, str(BASE_DIR), var) == 3
    assert (var / "secrets.json").read_bytes() == secrets


@pytest.mark.sampled("installed wheels", 1)
def test_wheel_keeps_its_data_in_the_users_data_folder(
    installed: Installed, tmp_path: Path
) -> None:
    def error(**environment: str) -> str:
        completed = subprocess.run(
            [str(installed.server), "key", "list", "acme"],
            env={"PATH": "/usr/bin:/bin"} | environment,
            cwd="/",
            capture_output=True,
            text=True,
        )
        assert completed.returncode == 1
        assert completed.stderr.count("\n") == 1
        return completed.stderr

    home = f"no installation in {tmp_path}/.local/share/tooltrail: set TOOLTRAIL_VAR"
    assert home in error(HOME=str(tmp_path))
    assert f"no installation in {tmp_path}/data/tooltrail" in error(
        HOME="/nonexistent", XDG_DATA_HOME=str(tmp_path / "data")
    )
    assert "or run tooltrail-server up to create one" in error(HOME=str(tmp_path))
