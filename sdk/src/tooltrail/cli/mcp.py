"""`tooltrail mcp`: records the calls of any MCP server, between its client and it.

Owns the command line. `tooltrail.mcp_recorder` passes the bytes and records them.
"""

import argparse
import ctypes
import gc
import re
import shutil
import signal
import sys
import threading
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

from tooltrail.mcp_recorder import client_configs, stdio
from tooltrail.mcp_recorder.session import Recorder
from tooltrail.settings import Settings
from tooltrail.trail import Trail

_LISTEN: Final = "127.0.0.1:8765"
_CONNECTIONS: Final = 32  # with more the process may take 64 MiB: threads keep freed memory
_SWITCH_SECONDS: Final = 0.0005
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LONG_BYTES: Final = 128 * 1024
_RUNNERS: Final = {
    "npx",
    "uvx",
    "uv",
    "node",
    "python",
    "python3",
    "docker",
    "bunx",
    "pipx",
    "deno",
}
_EPILOG: Final = (
    "Exit codes: those of the server; 2 usage error, 127 if the server cannot be started. "
    "TOOLTRAIL_URL and TOOLTRAIL_API_KEY say where the record goes; the server gets no key."
)


def add_parser(verbs: Any) -> None:
    """Add `mcp` to the command line."""
    parser = verbs.add_parser(
        "mcp",
        help="record the calls of an MCP server, without changing it",
        usage="tooltrail mcp [options] (-- COMMAND … | --upstream URL)",
        description="Start an MCP server, or stand before one at a URL, and record its calls. All "
        "bytes pass as they came. The record is on disk before a call reaches the server, and "
        "before its result reaches the client.",
        epilog=_EPILOG,
    )
    parser.add_argument("--upstream", metavar="URL", help="the URL of a server that runs elsewhere")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=_LISTEN,
        help=f"with --upstream: where clients connect ({_LISTEN})",
    )
    parser.add_argument(
        "--connections",
        metavar="COUNT",
        type=_count,
        default=_CONNECTIONS,
        help=f"with --upstream: of clients at a time ({_CONNECTIONS}); each may take 0.3 MiB",
    )
    parser.add_argument(
        "--fail-closed",
        action="store_true",
        help="do not make calls that cannot be recorded (default: make them, declare the loss)",
    )
    parser.add_argument("--name", help="the server's name until it says its own")
    parser.add_argument("--spool-dir", help="spool folder (TOOLTRAIL_SPOOL_DIR)")
    parser.add_argument(
        "--print-config",
        metavar="CLIENT",
        choices=list(client_configs.CLIENTS),
        help="print what to add to the client's file, and end: "
        + ", ".join(client_configs.CLIENTS),
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server's command")
    parser.set_defaults(run=_run)


def _count(text: str) -> int:
    """Raises argparse.ArgumentTypeError unless it is a whole number from 1."""
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"not a number of connections: {text}")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    if bool(options.command) == bool(options.upstream):
        return _complain("give the server's command after --, or its URL with --upstream", 2)
    name = options.name or _name_of(options.command or [urlsplit(options.upstream).netloc])
    if options.print_config:
        return _print_config(options, name)
    try:
        trail = Trail(
            spool_dir=options.spool_dir, when_full="raise" if options.fail_closed else None
        )
    except ValueError as error:
        return _complain(str(error), 2)
    # The thread that sends must not keep a message waiting for 5 ms.
    sys.setswitchinterval(_SWITCH_SECONDS)
    _return_memory()
    gc.collect()
    gc.freeze()
    try:
        if options.upstream:
            return _serve(options, Recorder(trail, name))
        return stdio.run(options.command, Recorder(trail, name))
    except OSError as error:
        what = options.listen if options.upstream else options.command[0]
        return _complain(f"{what}: {error.strerror}", stdio.CANNOT_RUN)
    except ValueError as error:
        return _complain(str(error), 2)
    finally:
        trail.close()


def _return_memory() -> None:
    """Make glibc return what a long message took, and share what is free between threads."""
    if sys.platform.startswith("linux") and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LONG_BYTES)
        libc.mallopt(_M_ARENA_MAX, 1)


def _serve(options: argparse.Namespace, recorder: Recorder) -> int:
    """Forward until a signal comes. Raises OSError and ValueError."""
    from tooltrail.mcp_recorder.http import Proxy  # a megabyte that a server's command needs not

    host, _, port = options.listen.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise ValueError(f"--listen is no HOST:PORT: {options.listen}")
    listen = host.strip("[]"), int(port)
    with Proxy(options.upstream, *listen, recorder, options.connections) as proxy:
        _complain(f"{proxy.url} records {options.upstream}", 0)

        def stop(number: int, frame: object) -> None:
            threading.Thread(target=proxy.shutdown, daemon=True).start()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        proxy.serve_forever()
        proxy.sessions.end()
    return 0


def _print_config(options: argparse.Namespace, name: str) -> int:
    own = shutil.which("tooltrail") or "tooltrail"
    given = ["--fail-closed"] if options.fail_closed else []
    for option in ("name", "spool_dir"):
        if (value := getattr(options, option)) is not None:
            given += [f"--{option.replace('_', '-')}", value]
    command = [own, "mcp", *given, "--", *options.command]
    client = options.print_config
    try:
        if options.upstream:
            text = client_configs.remote_snippet(client, name, _own_url(options))
            where = client_configs.where_remote(client)
        else:
            url = Settings.resolve().url or "https://tooltrail.example"
            text = client_configs.snippet(client, name, command, url)
            where = client_configs.where(client)
    except ValueError as error:
        return _complain(str(error), 2)
    sys.stdout.write(text + "\n")
    return _complain(where, 0)


def _own_url(options: argparse.Namespace) -> str:
    return f"http://{options.listen}{urlsplit(options.upstream).path}"


def _name_of(command: list[str]) -> str:
    """A name for a server: of its package, if a runner starts it, else of its program."""
    program = PurePath(command[0]).name
    if program not in _RUNNERS:
        return program
    named = (word for word in command[1:] if word != "run" and not word.startswith("-"))
    package = next(named, program)
    return re.sub(r"(?<=.)@.*", "", PurePath(package).name)


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"tooltrail: {text}\n")
    return code
