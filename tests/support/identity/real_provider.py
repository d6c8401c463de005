"""A real OpenID provider in a process of its own: npm's `oidc-provider`, on loopback."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.installation import clean_environment
from tests.support.node_packages import installed

_SOURCE = Path(__file__).parent
CLIENT = "tooltrail"
SECRET = "a client's secret"


@dataclass
class RealProvider:
    """The process, which can be started again with another key."""

    port: int
    people: Path
    redirect_uri: str = ""
    keys: int = 0
    _process: "subprocess.Popen[str] | None" = field(default=None)

    @property
    def issuer(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def set_groups(self, person: str, *groups: str) -> None:
        """What the provider says about a person from now on."""
        known = json.loads(self.people.read_text())
        self.people.write_text(json.dumps(known | {person: groups}))

    def start(self) -> None:
        """Start it, with a new key. Returns when it listens."""
        self.stop()
        self.keys += 1
        node = shutil.which("node")
        assert node is not None
        self._process = subprocess.Popen(
            [node, "provider.mjs"],
            cwd=installed(_SOURCE),
            env=clean_environment(
                PORT=str(self.port),
                PEOPLE=str(self.people),
                CLIENT_ID=CLIENT,
                CLIENT_SECRET=SECRET,
                REDIRECT_URI=self.redirect_uri,
                KEY_ID=f"key-{self.keys}",
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == self.issuer

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None


@contextmanager
def real_provider(folder: Path) -> Iterator[RealProvider]:
    """A provider that is not started yet; it ends with the block. Skips without Node.js."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("the identity provider needs Node.js")
    people = folder / "people.json"
    people.write_text("{}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    provider = RealProvider(port, people)
    try:
        yield provider
    finally:
        provider.stop()
