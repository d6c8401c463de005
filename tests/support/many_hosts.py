"""Several hosts on one database: each with its own folder, web server and worker."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from config.instance import BASE_DIR
from config.postgresql import database, roles
from config.process.supervise import answers, web_command, worker_command
from tests.support.citus import distributed_database, superuser_url
from tests.support.installation import (
    Installation,
    clean_environment,
    prepared_installation,
    until,
)

type Process = subprocess.Popen[bytes]


@dataclass
class Host:
    """One host: processes started here have its folder."""

    name: str
    folder: Path
    environment: dict[str, str]
    code: Path = BASE_DIR
    """The folder of its version."""
    processes: list[Process] = field(default_factory=list)

    @property
    def ledger(self) -> Path:
        """The folder of the host's signer."""
        return self.folder / "ledger"

    @property
    def log(self) -> str:
        """What its processes wrote to standard error."""
        return (self.folder / "log").read_text()

    def start(self, command: list[str], **more: str) -> Process:
        """Start a process of this host, in a process group of its own."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.code,
                env=self.environment | more,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def worker(self, *options: str, **more: str) -> Process:
        """Start a worker as `up` does."""
        return self.start([*worker_command(), *options], **more)

    def web(self, **more: str) -> str:
        """Start a web server with one process; its address once it is ready."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        pool = {"TOOLTRAIL_DATABASE_POOL": "1"}
        process = self.start(web_command("127.0.0.1", port, 1), **(pool | more))
        until(lambda: answers("127.0.0.1", port) or process.poll() is not None)
        assert process.poll() is None, self.log
        return f"http://127.0.0.1:{port}"

    def manage(self, *arguments: str, given: str = "") -> str:
        """Run a management command with this standard input; what it prints."""
        completed = self.completed(*arguments, given=given)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def completed(self, *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a management command with this standard input to its end."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.code,
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )


@dataclass
class ManyHosts:
    """The hosts, and the database that they share."""

    installation: Installation
    addresses: dict[str, str]
    superuser_url: str
    hosts: list[Host] = field(default_factory=list)

    def add(self, name: str, *, code: Path = BASE_DIR, **more: str) -> Host:
        """A new host with static files and the settings of the others, of this version."""
        folder = self.installation.var.parent / name
        folder.mkdir(mode=0o711)
        shutil.copytree(self.installation.var / "static", folder / "static")
        environment = clean_environment(TOOLTRAIL_VAR=str(folder), **self.addresses, **more)
        host = Host(name, folder, environment, code)
        self.hosts.append(host)
        return host

    def superuser(self) -> psycopg.Connection[Any]:
        """A connection that sees all rows."""
        return psycopg.connect(self.superuser_url)

    def tenant(self, slug: str, *scopes: str) -> dict[str, str]:
        """Make a tenant; its id and an API key with these scopes."""
        host = self.hosts[0]
        made = json.loads(host.manage("tenant", "create", slug, "--admin", f"{slug}-a", "--json"))
        options = [part for scope in scopes or ("ingest",) for part in ("--scope", scope)]
        key = json.loads(host.manage("key", "create", slug, "--name", "x", "--json", *options))
        return {"tenant_id": made["id"], "api_key": key["key"]}


def kill(process: Process) -> None:
    """`kill -9` a process and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def many_hosts(nodes: Sequence[str] = (), *, shards: int = 2) -> Iterator[ManyHosts]:
    """Hosts on a database of their own. Whatever still runs at the end is killed.

    With `nodes`, the database is distributed over these (`tests.support.citus`) in so many shards.
    """
    with prepared_installation() as installation:
        stored = json.loads((installation.var / "secrets.json").read_text())
        if nodes:
            superuser = superuser_url(nodes)
            addresses = distributed_database(nodes, installation.var, shards=shards)
        else:
            installation.postgres.start()
            superuser = database.with_database(installation.postgres.admin_url, roles.DATABASE)
            addresses = {
                variable: installation.postgres.url(role, stored[role])
                for variable, role in roles.VARIABLES.items()
            }
        addresses["TOOLTRAIL_SECRET_KEY"] = stored["secret_key"]
        made = ManyHosts(installation, addresses, superuser)
        try:
            yield made
        finally:
            for process in (each for host in made.hosts for each in host.processes):
                if process.poll() is None:
                    kill(process)
            if not nodes:
                installation.postgres.stop()
