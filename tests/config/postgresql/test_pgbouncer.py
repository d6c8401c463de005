"""Writers and readers of two hosts through PgBouncer in transaction mode, by 1.18 and 1.24."""

import json
import os
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from config.postgresql import base, roles
from tests.support import debian
from tests.support.clusters import running_cluster
from tests.support.installation import (
    Installation,
    announcement,
    end,
    new_installation,
    until,
)
from tests.support.installation_requests import Senders, status_code
from tests.support.management_commands import init_database, manage, row_count
from tests.support.many_hosts import ManyHosts, kill

pytestmark = pytest.mark.slow

PROGRAM = "/usr/sbin/pgbouncer"
READ = ("/api/v1/traces", "/api/v1/calls", "/api/v1/tools", "/api/v1/summary?range=24h")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@contextmanager
def pgbouncer(root: Path, server_port: int, passwords: dict[str, str]) -> Iterator[int]:
    """Run this root's PgBouncer in transaction mode, with fewer server connections than clients."""
    port = free_port()
    folder = root / "tmp" / f"pgbouncer-{port}"
    folder.mkdir()
    inside = Path("/") / folder.relative_to(root)
    users = "".join(f'"{user}" "{password}"\n' for user, password in passwords.items())
    (folder / "users").write_text(users)
    (folder / "ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server_port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = scram-sha-256\nauth_file = {inside}/users\npool_mode = transaction\n"
        "default_pool_size = 3\nmax_client_conn = 200\n"
    )
    command = [PROGRAM, "-u", "nobody", f"{inside}/ini"]
    if root != Path("/"):
        command = ["chroot", str(root), *command]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: f":{port}" in (folder / "log").read_text())
        yield port
    finally:
        process.kill()  # from 1.23 on, SIGTERM waits for clients
        process.wait()
        shutil.rmtree(folder)


def through(url: str, port: int) -> str:
    """The same address with the pooler's port."""
    parts = urlsplit(url)
    address = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{port}"
    return urlunsplit(parts._replace(netloc=address))


@pytest.mark.skipif(os.getuid() != 0, reason="it installs packages and makes a root of Debian 13")
@pytest.mark.sampled("hosts that come and go", 1)
@pytest.mark.parametrize("release", [12, 13])
def test_senders_and_readers_of_two_hosts_share_a_pooler(release: int) -> None:
    debian.need("pgbouncer", PROGRAM)
    root = Path("/") if release == 12 else debian.debian_13("pgbouncer")
    server_port = free_port()
    reachable = ("listen_addresses = '127.0.0.1'", f"port = {server_port}")
    with (
        new_installation() as installation,
        running_cluster(installation.var.parent / "own", *reachable) as server,
    ):
        socket_url = server.admin_url + f"&port={server_port}"
        admin = socket_url.partition("/postgres?")[0].removesuffix("@")
        addresses = init_database(f"{admin}@127.0.0.1:{server_port}/postgres", installation.var)
        passwords = {
            role: str(urlsplit(addresses[variable]).password)
            for variable, role in roles.VARIABLES.items()
        }
        with pgbouncer(root, server_port, passwords) as port:
            pooled = {name: through(url, port) for name, url in addresses.items()}
            with psycopg.connect(pooled["DATABASE_URL"], autocommit=True) as connection:
                assert base.is_pooled(connection)
                assert base._carries_prepared(connection) == (release == 13)
            _share(installation, pooled, addresses)


def _share(installation: Installation, pooled: dict[str, str], direct: dict[str, str]) -> None:
    pooled["DATABASE_OWNER_URL"] = direct["DATABASE_OWNER_URL"]
    process = installation.up("--json", "--dev-tenant", "acme", **pooled)
    facts = announcement(process)
    secret = json.loads((installation.var / "secrets.json").read_text())["secret_key"]
    hosts = ManyHosts(installation, pooled | {"TOOLTRAIL_SECRET_KEY": secret}, "")
    host = hosts.add("other")
    try:
        _share_between(facts, facts | {"url": host.web()}, direct)
    finally:
        for each in host.processes:
            kill(each)
    checked = manage("reindex", "--check", **pooled)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert end(process) == 0


def _share_between(facts: dict[str, str], other: dict[str, str], direct: dict[str, str]) -> None:
    seen: Counter[tuple[str, str, int]] = Counter()
    over = threading.Event()

    def read(url: str) -> None:
        while not over.is_set():
            for path in READ:
                code = status_code(url + path, Authorization=f"Bearer {facts['api_key']}")
                seen[url, path, code] += 1

    urls = (facts["url"], other["url"])
    readers = [threading.Thread(target=read, args=[url]) for url in urls for _ in range(3)]
    with Senders(facts, count=2) as senders, Senders(other, count=2) as others:
        for reader in readers:
            reader.start()
        try:
            until(lambda: min(senders.answers[200], others.answers[200]) > 30)
            until(lambda: sum(seen.values()) > 200)
        finally:
            over.set()
        for reader in readers:
            reader.join()
    assert {(url, code) for url, _, code in seen} == {(url, 200) for url in urls}, seen
    answers = senders.answers + others.answers
    assert answers.keys() <= {200, 503}, answers
    with psycopg.connect(direct["DATABASE_OWNER_URL"]) as owner:
        assert row_count(owner, "invocation") == answers[200]
        until(lambda: owner.execute("SELECT FROM procrastinate_workers").fetchone() is not None)
        # A task signs. The worker finds it by polling, because LISTEN does not work here.
        until(lambda: owner.execute("SELECT FROM ledger_checkpoint").fetchone() is not None)
