"""The web server: granian, changed so that it always replaces a killed web process.

Granian 2.8 ends all web processes when one dies within 5.5 s of its start. That is right for a
process that cannot start. It is wrong for one that was killed (out of memory, by an operator, by
a fault in native code): the server was down for 6 to 8 s, until the supervisor restarted it.
"""

import argparse
import contextlib
import gc
import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import django
from django.urls import get_resolver
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels, logger
from granian.server.mp import MPServer

from config.postgresql.schema import disk_migrations

_START_S = 5.5
"""A process that ends by itself within this time cannot start. Granian has the same value."""

_END_S = 0.5


class WebServer(MPServer):
    """Granian that exits only when a web process ended by itself while it started."""

    def _serve_loop(self, spawn_target: Callable[..., None], target_loader: Any) -> None:
        while True:
            self.main_loop_interrupt.wait()
            self.main_loop_interrupt.clear()  # first: a process that ends later sets it again
            if self.interrupt_signal:
                return
            while self.interrupt_children:
                index = self.interrupt_children[0]
                ended = self.wrks[index]
                code = ended.inner.exitcode
                if cannot_start(code, time.monotonic() - ended.birth):
                    return  # the index stays in the list, so granian exits with code 1
                logger.error("a web process exited with exit code %s; starting another", code)
                self.interrupt_children.pop(0)
                self._respawn_workers([index], spawn_target, target_loader)
            if self.reload_signal:
                self._reload(spawn_target, target_loader)  # type: ignore[no-untyped-call]  # granian's has no types


def cannot_start(exit_code: int | None, lived_s: float) -> bool:
    """Whether a new web process would end the same way. Not if a signal killed this one."""
    return (exit_code is None or exit_code >= 0) and lived_s <= _START_S


def load() -> None:
    """Import the application, all views and the migrations, so that each web process has them.

    A web process is a fork: it serves after 0.1 s instead of 2 to 5 s, and shares this memory.
    Nothing here may open a connection or start a thread, neither of which a fork can use, nor
    create what each process needs for itself, such as a file with its id.
    """
    if sys.platform == "linux":  # elsewhere system libraries start threads
        multiprocessing.set_start_method("fork")  # Python 3.14 has another default
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    _ = get_resolver().url_patterns
    importlib.import_module("config.http.application")
    disk_migrations()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy each memory page it visits


def end(groups: list[int]) -> None:
    """End the web processes of a killed server. They have `_END_S` to finish their requests."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for group in groups:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        deadline = time.monotonic() + _END_S
        while any(map(_is_there, groups)) and time.monotonic() < deadline:
            time.sleep(0.01)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def main() -> None:
    """Run `python -m config.process.web_server`, as the supervisor does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--blocking-threads", type=int, required=True)
    parser.add_argument("--replaces", type=int, nargs="+", default=[], metavar="GROUP")
    options = parser.parse_args()
    load()
    end(options.replaces)  # only now: they answered while this process was loading
    WebServer(
        "config.wsgi:application",
        address=options.host,
        port=options.port,
        interface=Interfaces.WSGI,
        workers=options.workers,
        blocking_threads=options.blocking_threads,
        http=HTTPModes.http1,
        websockets=False,
        # Granian warns about the number of threads, but most of them wait for the database.
        log_level=LogLevels.error,
        # Its lines go through ours, in the same format.
        log_dictconfig={"formatters": {}, "handlers": {}, "loggers": {"_granian": {}}},
        respawn_failed_workers=True,
        respawn_interval=0,
        workers_kill_timeout=2,
    ).serve()


if __name__ == "__main__":
    main()
