"""PostgreSQL clusters beside the session's: initdb runs once, and its result is copied."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from config.postgresql.embedded import EmbeddedPostgres


@contextmanager
def running_cluster(root: Path, *settings: str) -> Iterator[EmbeddedPostgres]:
    """A new PostgreSQL in this folder, until the block ends. It has no role of ours: to
    `up` it is somebody else's, although we start it like the embedded one.
    """
    root.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(_initialised()), str(root)], check=True)
    server = EmbeddedPostgres(root, settings=("fsync = off", *settings))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@cache
def _initialised() -> Path:
    """The folder that is copied."""
    root = Path(os.environ["TOOLTRAIL_VAR"]).with_name("initialised")
    server = EmbeddedPostgres(root, settings=("fsync = off",))
    server.start()
    server.stop()
    return root
