"""A cluster is backed up while senders go on, and restored into another one."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
import pytest

from config.postgresql import roles
from tests.support.citus import CITUS, citus_nodes, superuser_url
from tests.support.faults.load import Load
from tests.support.installation import until
from tests.support.management_commands import init_database, manage
from tests.support.many_hosts import ManyHosts, many_hosts

pytestmark = [pytest.mark.slow, pytest.mark.sampled("cluster", 0)]  # minutes
MORE = 10  # batches of the sender, before the next step


def demand_passwords(node: str) -> str:
    """Let nobody log in to this server without a password; its superuser's address with one."""
    with psycopg.connect(node, autocommit=True) as superuser:
        superuser.execute("ALTER ROLE postgres PASSWORD 'p@ss word'")
        (path,) = superuser.execute("SHOW hba_file").fetchone() or ("",)
        Path(path).write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        superuser.execute("SELECT pg_reload_conf()")
    return node.replace("postgres@", "postgres:p%40ss%20word@")


def move_a_shard(nodes: list[str]) -> None:
    """Move a group of shards to another node, while writers go on."""
    with psycopg.connect(superuser_url(nodes), autocommit=True) as superuser:
        superuser.execute(
            "SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename,"
            " n.nodeport, 'auto') FROM citus_shards s JOIN pg_dist_node n"
            " ON n.shouldhaveshards AND n.nodeport <> s.nodeport"
            " WHERE s.table_name = 'ledger_head'::regclass ORDER BY s.shardid LIMIT 1"
        )


def wait_until_signed(site: ManyHosts) -> None:
    """Wait until every entry is signed."""

    def is_signed() -> bool:
        (status,) = json.loads(site.hosts[0].manage("ledger", "status", "--json")).values()
        return bool(status["signed"] == status["entries"] > 0)

    until(is_signed)


def stored_batches(site: ManyHosts) -> set[str]:
    """The ids of the batches of senders."""
    with site.superuser() as superuser:
        rows = superuser.execute("SELECT batch_id FROM batch WHERE NOT is_own").fetchall()
    return {str(batch_id) for (batch_id,) in rows}


def test_file_of_a_cluster_is_restored_and_distributed_again(
    nodes: list[str], tmp_path: Path
) -> None:
    """The first cluster's nodes demand passwords of each other."""
    file = tmp_path / "cluster.dump"
    protected = [demand_passwords(node) for node in nodes]
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(nodes[1])
    with many_hosts(protected) as site:
        host = site.add("host")
        load = Load(host.web(), site.tenant("acme")["api_key"])
        host.worker()
        with load.sending():
            load.wait_for(MORE)
            move_a_shard(protected)
            assert load.broken == load.refused == 0
            refused = host.completed("backup", str(file))
            assert refused.returncode == 1
            assert "no common snapshot: use --stop-writes" in refused.stderr
            before = set(load.acknowledged)
            host.manage("backup", str(file), "--stop-writes")
            assert load.refused > 0, "a request was told to retry later"
            load.wait_for(MORE)  # and they are gone with the database
        host.worker()  # the first one ended, as under `up`, which starts it again
        wait_until_signed(site)

        with citus_nodes() as others:
            var = tmp_path / "var"
            addresses = init_database(others[0], var)
            restored = manage("restore", str(file), TOOLTRAIL_VAR=str(var), **addresses)
            assert restored.returncode == 0, restored.stderr
            workers = [option for node in others[1:] for option in ("--worker", node)]
            options = ("--admin-url", others[0], *workers, "--shards", "2")
            applied = manage("distribute", "apply", *options, **addresses)
            assert applied.returncode == 0, applied.stderr
            again = ManyHosts(site.installation, addresses, superuser_url(others))
            memory = shutil.copytree(host.ledger, tmp_path / "ledger")
            fresh = again.add("fresh", TOOLTRAIL_LEDGER_DIR=str(memory))
            assert before <= stored_batches(again) < stored_batches(site)
            fresh.manage("reindex", "--check")
            refusal = fresh.completed("ledger", "new-epoch", "acme", "--reason", "restored")
            assert refusal.returncode == 0, refusal.stderr
            wait_until_signed(again)
            fresh.manage("ledger", "status")


@dataclass
class Node:
    """A running server, and the files from which it can be restored."""

    url: str
    archive: Path
    """The folder of its WAL."""
    base: Path
    """Its base backup."""
    postmaster: psutil.Process = field(init=False)
    command: list[str] = field(init=False)
    data: Path = field(init=False)
    port: int = 0

    def __post_init__(self) -> None:
        with psycopg.connect(self.url) as connection:
            postmaster = psutil.Process(connection.info.backend_pid).parent()
            assert postmaster is not None
            self.postmaster = postmaster
            self.command = postmaster.cmdline()
            (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        self.data = Path(data)
        self.archive.mkdir(parents=True)
        for path in (self.archive, self.archive.parent):
            os.chown(path, self.data.stat().st_uid, self.data.stat().st_gid)

    def start(self, program: str, *options: str) -> "subprocess.Popen[bytes]":
        """Start a program of this server as its user."""
        owner = self.data.stat()
        path = str(Path(self.command[0]).with_name(program))
        if os.getuid() != 0:
            return subprocess.Popen([path, *options], cwd="/")
        return subprocess.Popen(
            [path, *options], cwd="/", user=owner.st_uid, group=owner.st_gid, extra_groups=[]
        )

    def restore(self, point: str) -> "subprocess.Popen[bytes]":
        """Start a server on the base backup, at another port, which stops at this restore point."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with (self.base / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {self.archive}/%f %p'\n")
            settings.write(f"recovery_target_name = '{point}'\n")
            settings.write("recovery_target_action = 'promote'\n")
        (self.base / "recovery.signal").touch()
        owner = self.data.stat()
        os.chown(self.base / "recovery.signal", owner.st_uid, owner.st_gid)
        options = [each for each in self.command[1:] if not each.startswith("port=")]
        at = options.index(str(self.data))
        options[at] = str(self.base)
        options = [each for each in options if each != "-c"]
        options = [f"--{each}" if "=" in each else each for each in options]
        return self.start("postgres", *options, f"--port={self.port}")


def test_base_backups_are_restored_to_one_point(tmp_path: Path) -> None:
    if not (CITUS / "cluster.py").exists():
        pytest.skip(f"NOTHING IS TRIED ON A CLUSTER: {CITUS}/cluster.py is missing")
    folder = Path(tempfile.mkdtemp(prefix="tt-restore-"))
    folder.chmod(0o755)
    with ExitStack() as closing:
        closing.callback(shutil.rmtree, folder)
        nodes = closing.enter_context(citus_nodes())
        with many_hosts(nodes) as site:
            host = site.add("host")
            load = Load(host.web(), site.tenant("acme")["api_key"])
            host.worker()
            with load.sending():
                load.wait_for(MORE)
                copies = [
                    Node(url, folder / f"{number}" / "wal", folder / f"{number}" / "base")
                    for number, url in enumerate(nodes)
                ]
                receivers = [
                    each.start("pg_receivewal", "-D", str(each.archive), "-d", each.url)
                    for each in copies
                ]
                for each in copies:
                    until(partial(has_files, each.archive))
                    options = ("-D", str(each.base), "-d", each.url, "--checkpoint=fast")
                    assert each.start("pg_basebackup", *options).wait() == 0
                load.wait_for(MORE)
                before = set(load.acknowledged)
                with site.superuser() as superuser:
                    superuser.execute("SELECT citus_create_restore_point('monday')")
                load.wait_for(MORE)
            wait_until_signed(site)
            after = stored_batches(site)
            for each in copies:
                with psycopg.connect(each.url, autocommit=True) as connection:
                    (segment,) = connection.execute(
                        "SELECT pg_walfile_name(pg_current_wal_lsn())"
                    ).fetchone() or ("",)
                    connection.execute("SELECT pg_switch_wal()")
                until((each.archive / segment).exists)
            for receiver in receivers:
                receiver.terminate()
                receiver.wait()
            memory = shutil.copytree(host.ledger, folder / "ledger")
            addresses = dict(site.addresses)

        for each in copies:  # the machines are lost
            each.postmaster.send_signal(signal.SIGQUIT)
        psutil.wait_procs([each.postmaster for each in copies])
        for each in copies:
            server = each.restore("monday")
            closing.callback(server.wait)
            closing.callback(server.send_signal, signal.SIGINT)
        urls = [with_port(each.url, each.port) for each in copies]
        for url in urls:
            until(partial(is_writable, url))
        with psycopg.connect(superuser_url(urls), autocommit=True) as superuser:
            for each in copies:
                superuser.execute(
                    "SELECT citus_update_node(nodeid, %s, %s) FROM pg_dist_node"
                    " WHERE nodeport = %s",
                    ["127.0.0.1", each.port, urlsplit(each.url).port],
                )
        with many_hosts() as another:
            for variable in roles.VARIABLES:
                addresses[variable] = with_port(addresses[variable], copies[0].port)
            again = ManyHosts(another.installation, addresses, superuser_url(urls))
            fresh = again.add("fresh", TOOLTRAIL_LEDGER_DIR=str(memory))
            assert before <= stored_batches(again) < after
            fresh.manage("reindex", "--check")
            fresh.manage("ledger", "new-epoch", "acme", "--reason", "restored")
            wait_until_signed(again)


def has_files(folder: Path) -> bool:
    return any(folder.iterdir())


def with_port(url: str, port: int) -> str:
    """The same address at another port."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{port}"))


def is_writable(url: str) -> bool:
    """Whether the server has ended its recovery."""
    try:
        with psycopg.connect(url) as connection:
            return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
    except psycopg.OperationalError:
        return False
