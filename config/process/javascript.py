"""Node and the JavaScript SDK, which the demo executor in JavaScript needs (`up --demo --js`)."""

import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Final

from config.instance import BASE_DIR

SDK: Final = BASE_DIR / "sdk-js"
EXECUTOR: Final = SDK / "demo" / "executor.mjs"
_NODE_MIN: Final = (20, 15)
_BUILD_S: Final = 600


class JavaScriptError(Exception):
    """There is no Node, or the SDK cannot be built. The message is one line for people."""


def ensure_sdk(report: Callable[[str], None]) -> None:
    """Build the SDK if needed. Raises JavaScriptError."""
    if not EXECUTOR.exists():
        raise JavaScriptError("--js needs a checkout of Tooltrail, as this package has no sdk-js/")
    wanted = f"--js needs Node {'.'.join(map(str, _NODE_MIN))} or newer, with npm"
    node = shutil.which("node")
    if node is None:
        raise JavaScriptError(f"{wanted}: `node` was not found")
    answer = subprocess.run(  # noqa: S603  # a program that the operator asked for
        [node, "--version"], capture_output=True, text=True, check=False
    )
    version = re.match(r"v(\d+)\.(\d+)", answer.stdout)
    if version is None or (int(version[1]), int(version[2])) < _NODE_MIN:
        raise JavaScriptError(f"{wanted}: `node` is {answer.stdout.strip() or 'broken'}")
    if shutil.which("npm") is None:
        raise JavaScriptError(f"{wanted}: `npm` was not found")
    report("building the JavaScript SDK")
    built = subprocess.run(  # noqa: S603  # this checkout's own script
        [BASE_DIR / ".ci" / "sdk-js", "build"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )
    if built.returncode:
        lines = built.stdout.strip().splitlines() or ["no output"]
        raise JavaScriptError(f"the JavaScript SDK cannot be built: {lines[-1]}")
