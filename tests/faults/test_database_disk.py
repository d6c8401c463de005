"""PostgreSQL's disk is full: senders are asked to retry, and no acknowledged event is lost."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
import urllib3

from tests.support.faults.executor import filled
from tests.support.faults.load import TRANSIENT, Load, assert_kept
from tests.support.installation import announcement, end, new_installation

pytestmark = pytest.mark.slow

SIZE_MIB = 400  # what a new database and its log of changes take, and some


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    """A file system of its own at `path`; skips the test where we may not mount one."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount the small disk this needs")
    path.mkdir(mode=0o711, parents=True)
    options = f"size={SIZE_MIB}m,mode=0711"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    completed = subprocess.run(mount, capture_output=True, text=True)
    if completed.returncode:
        pytest.skip(f"this host lets us mount no tmpfs: {completed.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.mark.sampled("stopping or without a database", 1)
def test_full_database_disk_rejects_events_and_loses_none(full: bool) -> None:
    with new_installation() as installation, small_disk(installation.var):
        installation.prepare()
        process = installation.up("--json", "--dev-tenant", "acme")
        facts = announcement(process)
        load = Load(facts["url"], facts["api_key"])
        senders = [threading.Thread(target=load.run) for _ in range(3)]
        for sender in senders:
            sender.start()
        try:
            for _ in range(5 if full else 1):
                load.wait_for(20)
                with filled(installation.var) as has_room:
                    load.wait_for_refusals(20)
                    assert urllib3.request("GET", facts["url"] + "/healthz").status == HTTPStatus.OK
                    assert not has_room()
            load.wait_for(20)
        finally:
            load.stop.set()
            for sender in senders:
                sender.join()
        assert load.statuses <= {HTTPStatus.OK, *TRANSIENT}
        assert_kept(installation, load)
        assert end(process) == 0
