"""A throw-away Citus cluster, started by a script that is not part of this repository."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.instance import BASE_DIR
from config.postgresql import database, roles
from tests.support.management_commands import init_database, manage

CITUS = Path(os.environ.get("CITUS", BASE_DIR.parent / "shared" / "citus"))
"""The folder of `cluster.py`."""


@contextmanager
def citus_nodes(workers: int = 2) -> Iterator[list[str]]:
    """URLs of superusers of a coordinator and so many workers, until the block ends.

    Raises FileNotFoundError if the script is missing.
    """
    script = CITUS / "cluster.py"
    if not script.exists():
        raise FileNotFoundError(f"NOTHING IS TRIED ON A CLUSTER: {script} is missing")
    folder = Path(tempfile.mkdtemp(prefix="tooltrail-citus-"))
    folder.chmod(0o755)  # as root, PostgreSQL runs as another user
    command = [sys.executable, str(script), "--folder", str(folder / "cluster")]
    command += ["--workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=BASE_DIR) as cluster:
        assert cluster.stdout is not None
        try:
            announced = json.loads(cluster.stdout.readline())
            yield [announced["coordinator"], *announced["workers"]]
        finally:
            cluster.terminate()
            cluster.wait()
            shutil.rmtree(folder)


def distributed_database(nodes: Sequence[str], var: Path, *, shards: int = 2) -> dict[str, str]:
    """Make a database with the schema and distribute it; the variables with its addresses."""
    addresses = init_database(nodes[0], var)
    workers = [option for worker in nodes[1:] for option in ("--worker", worker)]
    for command in (
        ("migrate", "--database", "owner", "--verbosity", "0"),
        ("partitions", "apply"),
        ("distribute", "apply", "--admin-url", nodes[0], *workers, "--shards", str(shards)),
    ):
        completed = manage(*command, TOOLTRAIL_VAR=str(var), **addresses)
        assert completed.returncode == 0, completed.stderr
    return addresses


def superuser_url(nodes: Sequence[str]) -> str:
    """The address of that database, on the coordinator."""
    return database.with_database(nodes[0], roles.DATABASE)
