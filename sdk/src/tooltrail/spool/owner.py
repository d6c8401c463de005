"""Which process owns a home, and whether it still runs: the rule that all SDKs keep.

A home has a file `owner` from the moment it gets its name, one object of JSON, all texts:

    {"pid": "4711", "started": "8412345", "boot": "1c24…", "namespace": "pid:[…] time:[…]",
     "host": "web-1", "machine": "3d12…"}

- Same boot and namespace: the owner has ended if no process has this pid and this start.
- Same boot, another namespace (a container): nobody can tell, so it counts as running.
- Another boot: it has ended if it was this host, and both processes are in no container.
  Any other host's process counts as running.

`started` is the start in clock ticks since boot, so a pid that is used again is another process.
On other systems than Linux boot and start are empty: the owner has ended if this host has no such
pid. On Linux with a `/proc` that cannot be read, the host is empty, too, and nobody can tell.
"""

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

OWNER = "owner"
_MEMBERS = ("pid", "started", "boot", "namespace", "host", "machine")
_HOSTS_OWN = "pid:[4026531836]"
"""The namespace of processes that are in no container: a constant of Linux."""

Runs = Callable[[int, str], bool]
"""Whether a process with this pid and start runs here."""


def this_process() -> dict[str, str]:
    """The content of this process's `owner` files."""
    pid = os.getpid()
    return {"pid": str(pid), "started": _started(pid), **_place()}


def write_owner(home: Path) -> None:
    """Write the file of a home that this process makes. Raises OSError."""
    (home / OWNER).write_text(json.dumps(this_process()) + "\n")


def read_owner(home: Path) -> dict[str, str] | None:
    """Read who owns a home; None if it has no such file, or an unreadable one."""
    with suppress(OSError, ValueError):
        stated = json.loads((home / OWNER).read_bytes())
        if isinstance(stated, dict) and all(isinstance(stated.get(m), str) for m in _MEMBERS):
            return stated
    return None


def has_ended(owner: Mapping[str, str], here: Mapping[str, str], runs: Runs) -> bool:
    """Whether the owner's process has certainly ended, as a process that is `here` can tell."""
    if not owner["pid"].isdecimal():
        return False
    pid = int(owner["pid"])
    if not here["boot"] or not owner["boot"]:
        is_here = here["boot"] == owner["boot"] and here["host"] == owner["host"] != ""
        return is_here and not runs(pid, "")
    if owner["boot"] == here["boot"]:
        return owner["namespace"] == here["namespace"] and not runs(pid, owner["started"])
    return (
        owner["machine"] == here["machine"] != ""
        and owner["host"] == here["host"]
        and owner["namespace"].startswith(_HOSTS_OWN)
        and here["namespace"].startswith(_HOSTS_OWN)
    )


def runs(pid: int, started: str) -> bool:
    """Whether the process with this pid and start runs; with an empty start, any of this pid.

    A process that has ended and waits for its parent does not run.
    """
    state, threads, start = _stat(pid)
    if start and started:
        is_ended = state in ("Z", "X") and threads <= 1  # a process may outlive its first thread
        return start == started and not is_ended
    try:  # `/proc` may hide the processes of others
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _started(pid: int) -> str:
    return _stat(pid)[2]


def _stat(pid: int) -> tuple[str, int, str]:
    """State, number of threads and start of a process; empty without `/proc`."""
    try:
        # The name of the program is in brackets, and may hold any character.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[17]), fields[19].decode()
    except (OSError, ValueError, IndexError):
        return "", 0, ""


@cache
def _place() -> dict[str, str]:
    """Where this process runs."""
    boot = namespace = machine = ""
    host = socket.gethostname()
    if sys.platform == "linux":
        try:
            if str(Path("/proc/self").readlink()) != str(os.getpid()):
                raise OSError("this is the /proc of another namespace")
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            namespace = str(Path("/proc/self/ns/pid").readlink())
        except OSError:
            host = boot = ""
        with suppress(OSError):  # since Linux 5.6; the start of a process is relative to it
            namespace += f" {Path('/proc/self/ns/time').readlink()}"
    with suppress(OSError, ValueError):
        machine = Path("/etc/machine-id").read_text().strip()
    return {"boot": boot, "namespace": namespace, "host": host, "machine": machine}
