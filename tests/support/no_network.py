"""Runs a command in a network namespace without any connection. Linux only."""

import os
import shlex
import sys
from pathlib import Path

_HOMES = [Path("/root"), Path("/home")]
"""Folders that other users cannot enter, and that may contain the Python."""


def without_network(command: list[str], user: int) -> list[str]:
    """The command, to be run as this user in a network that has only the loopback interface.

    Another user than root may not be able to enter root's home, where the Python may be. Then only
    the folder of the Python exists there.
    """
    lines = ["ip link set lo up"]
    home = next((home for home in _HOMES if Path(sys.base_prefix).is_relative_to(home)), None)
    if user != os.geteuid() and home is not None:
        prefix = shlex.quote(sys.base_prefix)
        lines += [
            "mount --make-rprivate /",
            "python=$(mktemp -d)",
            f'mount --bind {prefix} "$python"',
            f"mount -t tmpfs -o mode=755 tmpfs {home}",
            f"mkdir -p {prefix}",
            f'mount --bind "$python" {prefix}',
        ]
    as_user = f"setpriv --reuid {user} --regid {user} --clear-groups" * (user != os.geteuid())
    script = "; ".join(["set -e", *lines, f"exec {as_user} {shlex.join(command)}"])
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--net", "--mount", *rights, "sh", "-c", script]
