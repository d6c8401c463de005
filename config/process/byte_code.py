"""Compiles what the web server imports, while the first start prepares the database.

A package that uv has installed has no byte code: Python compiles each module at its first import.
For the web server that takes seconds, and the second core has nothing else to do meanwhile.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.instance import BASE_DIR, child_environment
from config.postgresql.roles import APP

_PROGRAM = "from config.process.web_server import load; load()"


@contextmanager
def compiled_meanwhile() -> Iterator[None]:
    """Import the web server's modules in another process until the block ends, if they lack byte
    code. What it has not compiled by then, the web server compiles."""
    if not _is_lacking():
        yield
        return
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-c", _PROGRAM],
        cwd=BASE_DIR,
        env=child_environment(APP),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # the web server reports its own errors
        start_new_session=True,  # Ctrl-C in a terminal: we end it
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _is_lacking() -> bool:
    """Whether there is none, and it can be written; otherwise compiling helps no later start."""
    folder = BASE_DIR / "config"
    compiled = Path(importlib.util.cache_from_source(str(folder / "urls.py")))
    return not sys.dont_write_bytecode and not compiled.exists() and os.access(folder, os.W_OK)
