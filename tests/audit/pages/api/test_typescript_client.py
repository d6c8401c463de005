"""A TypeScript client generated from the API's description does every act on a running server.

npm fetches the generator and the compiler in exact versions; without node the test is skipped.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from config.instance import BASE_DIR
from config.openapi import description
from tests.support import typescript_story
from tests.support.api_story import STORY, make_story
from tests.support.factories import Cast
from tests.support.installation import clean_environment
from tests.support.server import LiveServer

_NPM, _NODE = shutil.which("npm"), shutil.which("node")
_SOURCE = BASE_DIR / "tests" / "typescript"
_STRICT = (
    *("--strict", "--noUncheckedIndexedAccess", "--noUnusedLocals"),
    "--exactOptionalPropertyTypes",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_NPM is None or _NODE is None, reason="node and npm are not here"),
]


def _run(folder: Path, *command: str, **environment: str) -> str:
    completed = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert completed.returncode == 0, completed.stdout[-8000:] + completed.stderr[-8000:]
    return completed.stdout


def test_every_act_is_typed_and_done(live_server: LiveServer, acme: Cast, tmp_path: Path) -> None:
    assert _NPM is not None and _NODE is not None
    folder = tmp_path / "client"
    shutil.copytree(_SOURCE, folder, ignore=shutil.ignore_patterns("node_modules"))
    _run(
        folder, _NPM, "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"
    )
    modules = folder / "node_modules"
    (folder / "openapi.json").write_text(json.dumps(description()))
    generator = str(modules / "openapi-typescript" / "bin" / "cli.js")
    _run(folder, _NODE, generator, "openapi.json", "--output", "api.ts")
    key, steps = make_story(acme)
    (folder / "story.ts").write_text(typescript_story.program(steps, description()))
    compiler = str(modules / "typescript" / "bin" / "tsc")
    target = ("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "nodenext")
    _run(folder, _NODE, compiler, *_STRICT, *target, "--skipLibCheck", "story.ts")
    told = _run(
        folder,
        _NODE,
        "story.js",
        TOOLTRAIL_URL=live_server.url,
        TOOLTRAIL_API_KEY=key,
    )
    statuses = json.loads(told)
    assert statuses.keys() == {step.operation for step in STORY}
    assert set(statuses.values()) <= {200, 201}
