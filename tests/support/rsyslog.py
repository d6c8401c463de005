"""A real rsyslog that takes syslog over TLS on this machine, and writes each message to a file."""

import json
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import debian
from tests.support.siem_receivers import HOST, certificate

PROGRAM = "/usr/sbin/rsyslogd"
_MODULES = "/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so"
_CONFIGURATION = """
global(
    DefaultNetstreamDriver="gtls"
    DefaultNetstreamDriverCAFile="{authority}"
    DefaultNetstreamDriverCertFile="{certificate}"
    DefaultNetstreamDriverKeyFile="{key}"
    workDirectory="{folder}"
    maxMessageSize="256k"
)
module(load="imtcp" StreamDriver.Name="gtls" StreamDriver.Mode="1" {authentication})
template(name="message" type="string" string="%hostname% %app-name% %msgid% %pri% %msg%\\n")
input(type="imtcp" port="{port}" address="{host}")
action(type="omfile" file="{folder}/messages" template="message")
"""


@dataclass
class Rsyslog:
    """The server, which can be killed and started again, on one port.

    With the `authority` of clients, it takes records only of those that show a certificate of it
    with the name `permitted`.
    """

    folder: Path
    port: int = 0
    authority: str = ""
    permitted: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        if not self.port:
            with socket.socket() as probe:
                probe.bind((HOST, 0))
                self.port = probe.getsockname()[1]
        pem, key = certificate().write(self.folder)
        authority, authentication = pem, 'StreamDriver.AuthMode="anon"'
        if self.authority:
            authority = self.folder / "authority.pem"
            authority.write_text(self.authority)
            authentication = f'StreamDriver.AuthMode="x509/name" PermittedPeer=["{self.permitted}"]'
        configuration = self.folder / "rsyslog.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                authority=authority,
                authentication=authentication,
                certificate=pem,
                key=key,
                folder=self.folder,
                host=HOST,
                port=self.port,
            )
        )
        pid = self.folder / "pid"
        pid.unlink(missing_ok=True)
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [PROGRAM, "-n", "-f", str(configuration), "-i", str(pid)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self.port)) == 0:
                    return
            assert self._process.poll() is None, (self.folder / "output").read_text()
            time.sleep(0.05)
        raise AssertionError("rsyslog does not listen")

    def kill(self) -> None:
        """End it without warning."""
        assert self._process is not None, "started"
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it, so that it writes what it has in memory."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Head and text of each message that was written, in order."""
        file = self.folder / "messages"
        if not file.exists():
            return []
        lines = file.read_bytes().decode().split("\n")[:-1]
        return [(" ".join(line.split(" ", 4)[:4]), line.split(" ", 4)[4].strip()) for line in lines]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The messages' records."""
        return [json.loads(text) for _, text in self.messages]


def need_rsyslog() -> None:
    """Install Debian's rsyslog with TLS if it is missing."""
    if not Path(_MODULES).exists() and (os.getuid() != 0 or shutil.which("apt-get") is None):
        pytest.skip("NO RECORD IS SENT TO RSYSLOG: as root on Debian: apt install rsyslog-gnutls")
    debian.need("rsyslog-gnutls", _MODULES)
