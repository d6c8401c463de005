"""The real web server on the test database, in a process of its own."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import psutil

from config.instance import BASE_DIR, child_environment
from config.postgresql.roles import APP
from config.process.supervise import answers, web_command

_HOST = "127.0.0.1"


@dataclass(frozen=True)
class LiveServer:
    """A running server; `url` has no slash at its end."""

    url: str


@contextmanager
def running_server(**environment: str) -> Iterator[LiveServer]:
    """Serve until the block ends, with the variables given on top of the session's.

    Raises RuntimeError with what the server printed when it ends before it is ready.
    """
    _collect_static()
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            web_command(_HOST, port, processes=1),
            cwd=BASE_DIR,
            env=child_environment(APP) | {"TOOLTRAIL_DATABASE_POOL": "1"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            while not answers(_HOST, port):
                try:
                    process.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
                output.seek(0)
                raise RuntimeError(f"the server ended: {output.read()}")
            yield LiveServer(f"http://{_HOST}:{port}")
        finally:
            process.terminate()
            process.wait()


@cache
def _collect_static() -> None:
    # In a process of its own: the session's settings have no manifest.
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"],
        cwd=BASE_DIR,
        check=True,
    )


def web_process(server: LiveServer) -> psutil.Process:
    """The process that serves requests: a child of the one that opened this server's port."""
    port = str(urlsplit(server.url).port)
    for process in psutil.Process().children(recursive=True):
        if process.children() and port in process.cmdline():
            return process.children()[-1]
    raise AssertionError("no web process")
