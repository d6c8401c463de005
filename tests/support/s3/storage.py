"""Real S3-compatible storage on this machine: moto's server, in an environment of its own.

moto needs versions of libraries that the server cannot have, so it is not in the test environment.
"""

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from config.env import Opening, openings
from config.http.bucket import Bucket
from tests.support.siem_receivers import HOST

_REQUIREMENTS = Path(__file__).parent / "requirements.txt"
ACCESS_KEY, SECRET_KEY, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY", "eu-west-1"


@cache
def _python() -> Path:
    """The interpreter that has moto."""
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = Path(sys.prefix) / f"s3-{digest}"
    python = folder / "bin" / "python"
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # those of `pytest -n 2` share it
        if not (folder / "complete").exists():
            uv = os.environ.get("UV") or shutil.which("uv") or "uv"
            install = [uv, "pip", "install", "--no-config", "--quiet", "--python", str(python)]
            for command in (
                [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
                [*install, "-r", str(_REQUIREMENTS)],
            ):
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=600)
            (folder / "complete").touch()
    return python


@contextmanager
def s3_storage() -> Iterator[str]:
    """Serve S3 until the block ends; the endpoint."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    command = [str(_python()), "-m", "moto.server", "-H", HOST, "-p", str(port)]
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(1_200):
            with socket.socket() as probe:
                if probe.connect_ex((HOST, port)) == 0:
                    break
            assert server.poll() is None, "moto ended"
            time.sleep(0.05)
        yield f"http://{HOST}:{port}"
    finally:
        server.terminate()
        server.wait()


def open_bucket(endpoint: str, name: str, allowed: tuple[Opening, ...]) -> Bucket:
    """A bucket of the storage."""
    return Bucket(
        endpoint,
        name,
        region=REGION,
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
        allowed=allowed,
    )


def allowed_here() -> tuple[Opening, ...]:
    """What an operator allows who has storage on this machine."""
    before = os.environ.get("TOOLTRAIL_STREAM_ALLOW")
    os.environ["TOOLTRAIL_STREAM_ALLOW"] = HOST
    try:
        return tuple(openings("TOOLTRAIL_STREAM_ALLOW"))
    finally:
        if before is None:
            del os.environ["TOOLTRAIL_STREAM_ALLOW"]
        else:
            os.environ["TOOLTRAIL_STREAM_ALLOW"] = before
