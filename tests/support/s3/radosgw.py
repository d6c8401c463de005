"""A second real S3 on this machine: Ceph's gateway, which checks signatures, unlike moto.

One monitor, one storage daemon in memory and the gateway, from Debian's packages.
"""

import os
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.debian import need
from tests.support.s3.storage import ACCESS_KEY, SECRET_KEY
from tests.support.siem_receivers import HOST

_PACKAGES = {
    "ceph-mon": "/usr/bin/ceph-mon",
    "ceph-osd": "/usr/bin/ceph-osd",
    "radosgw": "/usr/bin/radosgw",
}
_START_S = 120
_CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = [v2:{host}:{port}]
public addr = {host}
ms bind ipv6 = false
keyring = {folder}/keyring
run dir = {folder}/run
admin socket = {folder}/run/$name.asok
log file = {folder}/$name.log
pid file =
rgw data = {folder}/run
osd objectstore = memstore
memstore device bytes = 1073741824
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 2
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
crush location = root=default host=one
mon allow pool size one = true
"""
_CAPABILITIES = {
    "mon.": ("mon", "allow *"),
    "client.admin": ("mon", "allow *", "osd", "allow *"),
    "osd.0": ("mon", "allow profile osd", "osd", "allow *"),
}


@contextmanager
def ceph_gateway(folder: Path) -> Iterator[str]:
    """Serve S3 from this empty folder until the block ends; the endpoint.

    Its only user has the keys of `tests.support.s3.storage`.
    """
    for package, program in _PACKAGES.items():
        need(package, program)
    monitor_port, port = _free_port(), _free_port()
    settings = folder / "ceph.conf"
    fsid = uuid.uuid4()
    settings.write_text(
        _CONFIGURATION.format(fsid=fsid, host=HOST, port=monitor_port, folder=folder)
    )
    (folder / "run").mkdir()
    with ExitStack() as stack:

        def run(program: str, *arguments: object) -> str:
            return _output([program, "-c", settings, *arguments])

        def start(program: str, *arguments: object) -> None:
            stack.enter_context(_running([program, "-c", settings, "-f", *arguments]))

        _make_keys(folder / "keyring")
        monitor = ("-i", "a", "--mon-data", folder / "mon")
        address = f"[v2:{HOST}:{monitor_port}]"
        _output(
            ["monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, folder / "monmap"]
        )
        run("ceph-mon", "--mkfs", *monitor, "--monmap", folder / "monmap")
        start("ceph-mon", *monitor)

        osd_id = uuid.uuid4()
        run("ceph", "--connect-timeout", _START_S, "osd", "new", osd_id)
        storage = ("-i", "0", "--osd-data", folder / "osd")
        (folder / "osd").mkdir()
        run("ceph-osd", *storage, "--mkfs", "--osd-uuid", osd_id)
        start("ceph-osd", *storage)
        _wait(lambda: "1 up" in run("ceph", "osd", "stat"))

        names = ("--uid", "tooltrail", "--display-name", "tooltrail")
        keys = ("--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
        run("radosgw-admin", "user", "create", *names, *keys)
        frontend = f"beast endpoint={HOST}:{port}"
        start("radosgw", "-n", "client.admin", f"--rgw-frontends={frontend}")
        _wait(lambda: _is_open(port))
        yield f"http://{HOST}:{port}"


def _make_keys(keyring: Path) -> None:
    _output(["ceph-authtool", "--create-keyring", keyring])
    for name, capabilities in _CAPABILITIES.items():
        pairs = zip(capabilities[::2], capabilities[1::2], strict=True)
        caps = [word for pair in pairs for word in ("--cap", *pair)]
        _output(["ceph-authtool", keyring, "--gen-key", "-n", name, *caps])


def _output(command: Sequence[object]) -> str:
    completed = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@contextmanager
def _running(command: Sequence[object]) -> Iterator[None]:
    process = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # what it stores is in memory
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _wait(is_ready: Callable[[], bool]) -> None:
    until = time.monotonic() + _START_S
    while not is_ready():
        assert time.monotonic() < until, "Ceph did not start"
        time.sleep(0.2)
