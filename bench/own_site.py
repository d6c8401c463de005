"""An installation for one run, with its default settings in a folder of its own."""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Site:
    """The measured installation."""

    facts: dict[str, str]
    var: Path
    supervisor: int
    is_scattered: bool = False
    """Whether the calls sent to it are scattered."""

    def web(self) -> list[psutil.Process]:
        """The web server's processes."""
        children = psutil.Process(self.supervisor).children(recursive=True)
        return [child for child in children if "config.process.web_server" in child.cmdline()]

    def cpu_seconds(self) -> tuple[float, float]:
        """CPU seconds used so far by the web server's processes, and by PostgreSQL's."""
        web = self.web()
        pid = int((self.var / "postgres/data/postmaster.pid").read_text().split("\n", 1)[0])
        postmaster = psutil.Process(pid)
        return (
            sum(sum(child.cpu_times()[:2]) for child in web),
            sum(postmaster.cpu_times()[:4])  # includes ended children
            + sum(sum(child.cpu_times()[:2]) for child in postmaster.children()),
        )


def counted(facts: dict[str, str]) -> int:
    """The number of calls that the server has counted."""
    parts = urlsplit(facts["url"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request(
        "GET", "/api/v1/summary?range=48h", headers={"Authorization": f"Bearer {facts['api_key']}"}
    )
    return int(json.loads(connection.getresponse().read())["calls"])


@contextmanager
def own_site() -> Iterator[Site]:
    """Run `manage.py up` with a tenant `bench` in a temporary folder until the block ends."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        var = Path(folder) / "var"
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--dev-tenant", "bench", "--json", "--port", "0"],
            cwd=ROOT,
            env=os.environ | {"TOOLTRAIL_VAR": str(var)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield Site(json.loads(process.stdout.readline()), var, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
