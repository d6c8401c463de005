"""The steps of a Containerfile, run in a root of Debian 13 under bwrap instead of by an engine.

The base image is replaced: Debian 13's Python stands in for that of `python:3.13-slim`. What an
engine adds (layers, registries, signatures) is not tried.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from config.instance import BASE_DIR
from tests.support import debian

_PACKAGES = ("passwd", "python3", "python3-pip", "python3-venv", "ca-certificates")
# What this machine's pip and uv need to reach their index.
_NETWORK = re.compile(r"(?i)^(PIP|UV)_|_PROXY$|CERT|CA_BUNDLE")
_SHARED = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/pip.conf")


@dataclass(frozen=True)
class Image:
    """A built root and what its Containerfile says of running it."""

    root: Path
    folder: str
    user: str
    """uid:gid"""
    environment: dict[str, str]
    entrypoint: list[str]
    command: list[str]
    health: list[str]

    def run(self, command: list[str], mounts: dict[Path, str]) -> list[str]:
        """A command line that runs `command` as a locked-down engine would.

        The root is read-only, the user has no privilege, and the only network is the loopback
        interface of a new network namespace. `mounts` are writable folders and their places.
        """
        uid, gid = self.user.split(":")
        return [
            *("bwrap", "--ro-bind", str(self.root), "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--unshare-net", "--unshare-pid", "--die-with-parent"),
            *(word for path, at in mounts.items() for word in ("--bind", str(path), at)),
            *("--chdir", self.folder, "--clearenv"),
            *("--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"),
            *(word for name in self.environment.items() for word in ("--setenv", *name)),
            *("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"),
            *("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"),
            *("--bounding-set=-all", "--inh-caps=-all", *command),
        ]


def build(root: Path) -> Image:
    """Run the steps of the project's Containerfile in a copy of Debian 13 at `root`."""
    debian.need("bubblewrap", "/usr/bin/bwrap")
    base = debian.debian_13(*_PACKAGES)
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
    # The image's Python belongs to the image, so its pip installs without a virtual environment.
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    folder, user, environment = "/", "0:0", dict[str, str]()
    words: dict[str, list[str]] = {}
    for instruction, argument in _instructions():
        if instruction == "RUN":
            _run(root, folder, environment, argument)
        elif instruction == "WORKDIR":
            folder = argument
            (root / folder.lstrip("/")).mkdir(parents=True)
        elif instruction == "COPY":
            assert argument == ". .", argument
            _copy(root / folder.lstrip("/"))
        elif instruction == "USER":
            user = argument
        elif instruction == "ENV":
            name, _, value = argument.partition("=")
            environment[name] = value
        elif instruction in ("ENTRYPOINT", "CMD"):
            words[instruction] = json.loads(argument)
        elif instruction == "HEALTHCHECK":
            words[instruction] = json.loads(argument.partition("CMD ")[2])
        else:
            assert instruction in ("FROM", "EXPOSE"), instruction
    return Image(
        root, folder, user, environment, words["ENTRYPOINT"], words["CMD"], words["HEALTHCHECK"]
    )


def _instructions() -> list[tuple[str, str]]:
    text = (BASE_DIR / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    parts = [line.partition(" ") for line in lines]
    return [(name, argument.strip()) for name, _, argument in parts]


def _copy(target: Path) -> None:
    """Copy what git knows: .dockerignore leaves out the rest."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        if (BASE_DIR / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(BASE_DIR / name, target / name)


def _run(root: Path, folder: str, environment: dict[str, str], script: str) -> None:
    """Run a step as root, with a network: the index of packages is outside."""
    shared = [path for path in _SHARED if Path(path).exists()]
    outside = {name: value for name, value in os.environ.items() if _NETWORK.search(name)}
    (root / "etc/pip.conf").touch()
    subprocess.run(
        [
            *("bwrap", "--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--cap-add", "ALL", "--chdir", folder, "--clearenv"),
            *(word for path in shared for word in ("--ro-bind", path, path)),
            *("--setenv", "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            *(word for name in (outside | environment).items() for word in ("--setenv", *name)),
            *("/bin/sh", "-euc", script),
        ],
        check=True,
        timeout=600,
    )


def in_background_until_healthy(image: Image, arguments: list[str]) -> list[str]:
    """A command that starts the entry point, waits for the health check, and ends it on `end`.

    It prints `healthy`, the uid, and in the end the exit code. In one command, because both must
    see the same loopback interface.
    """
    start, health = shlex.join([*image.entrypoint, *arguments]), shlex.join(image.health)
    script = f"""
        {start} & pid=$!
        until {health} 2>/dev/null; do kill -0 $pid || exit 1; sleep 0.2; done
        echo healthy $(id -u)
        touch /written 2>/dev/null && echo the root can be written
        read -r end
        kill -TERM $pid; wait $pid; echo exit code $?
    """
    return ["/bin/sh", "-c", script]
