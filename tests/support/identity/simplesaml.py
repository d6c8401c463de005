"""A real SAML provider in a process of its own: Debian's `simplesamlphp`, on loopback."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from tests.support.debian import need
from tests.support.identity.saml_provider import Keys, keys
from tests.support.installation import clean_environment

_SOURCE = Path(__file__).parent / "simplesaml"
_PHP = "/usr/bin/php"
_START_S = 30.0


@dataclass
class SimpleSaml:
    """The process, which can be started again with another key."""

    port: int
    folder: Path
    service: str = ""
    """The entity ID of the server that people sign in to."""
    service_address: str = ""
    """Where that server takes responses."""
    _process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def address(self) -> str:
        """Where it is: at another site than the server, for a browser."""
        return f"http://localhost:{self.port}/"

    @property
    def entity_id(self) -> str:
        """Its name; its metadata is there, too."""
        return f"{self.address}saml2/idp/metadata.php"

    def set_groups(self, person: str, *groups: str) -> None:
        """What it says about a person from now on."""
        people = self.folder / "people.json"
        known = json.loads(people.read_text())
        people.write_text(json.dumps(known | {person: groups}))

    def start(self, by: Keys | None = None) -> None:
        """Start it with a key. Returns when it answers."""
        self.stop()
        chosen = by or keys()
        (self.folder / "cert" / "key.pem").write_bytes(chosen.private)
        (self.folder / "cert" / "certificate.pem").write_text(chosen.certificate)
        self._process = subprocess.Popen(
            [_PHP, "-S", f"127.0.0.1:{self.port}", "-t", str(_installed() / "www")],
            cwd=self.folder,
            env=clean_environment(
                BASE_URL=self.address,
                SERVICE=self.service,
                SERVICE_ADDRESS=self.service_address,
                SIMPLESAMLPHP_CONFIG_DIR=str(self.folder / "config"),
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + _START_S
        while True:
            try:
                with urllib.request.urlopen(self.entity_id, timeout=10):
                    return
            except urllib.error.URLError:
                assert time.monotonic() < until, "simplesamlphp does not answer"
                time.sleep(0.1)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None


@contextmanager
def simple_saml(folder: Path) -> Iterator[SimpleSaml]:
    """A provider that is not started yet; it ends with the block. Skips without Debian."""
    if shutil.which("apt-get") is None or os.getuid() != 0:
        pytest.skip("simplesamlphp needs Debian, and root to install PHP")
    copy = folder / "simplesaml"
    shutil.copytree(_SOURCE, copy)
    for name in ("cert", "log", "data", "tmp"):
        (copy / name).mkdir()
    (copy / "people.json").write_text("{}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    provider = SimpleSaml(port, copy)
    try:
        yield provider
    finally:
        provider.stop()


@cache
def _installed() -> Path:
    """The folder of simplesamlphp, unpacked beside the environment: the package needs Apache."""
    for package, program in (
        ("php-cli", _PHP),
        ("php-xml", "/usr/share/doc/php-xml"),
        ("php-mbstring", "/usr/share/doc/php-mbstring"),
    ):
        need(package, program)
    folder = Path(sys.prefix) / "simplesamlphp"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of pytest share it
        if not (folder / "complete").exists():
            subprocess.run(["apt-get", "-qq", "update"], check=True)
            subprocess.run(
                ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", "simplesamlphp"],
                cwd=folder,
                check=True,
            )
            (archive,) = folder.glob("*.deb")
            subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)
            (folder / "complete").touch()
    return folder / "usr" / "share" / "simplesamlphp"
