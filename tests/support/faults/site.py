"""The executors of one tenant: its key, a spool folder, journals, and the server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tenants.models import Tenant
from tests.support.factories import make_ingest_key
from tests.support.faults.conservation import Balance, assert_conserved

EXECUTOR = Path(__file__).with_name("executor.py")
PATIENCE_SECONDS = 600.0


class Site:
    """One tenant's executors on this host."""

    def __init__(self, tenant: Tenant, url: str, folder: Path, spool_dir: Path) -> None:
        self.tenant = tenant
        self.url = url
        self.spool_dir = spool_dir
        self.journals = folder / "journals"
        self.journals.mkdir(parents=True)
        self.environment = {
            **os.environ,
            "TOOLTRAIL_URL": url,
            "TOOLTRAIL_API_KEY": make_ingest_key(tenant),
            "TOOLTRAIL_SPOOL_DIR": str(spool_dir),
        }
        self._errors = folder / "errors.txt"
        self._running: list[subprocess.Popen[str]] = []

    def start(
        self, run: str, *arguments: str, before: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """Start `executor.py`; `before` is put in front of its command line."""
        command = (sys.executable, str(EXECUTOR), run, "--journal", str(self.journals))
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(
                (*before, *command, *arguments),
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def finish(self, process: subprocess.Popen[str]) -> str:
        """Wait until an executor ends; fail unless its exit code is 0."""
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, self.errors
        return out

    @property
    def errors(self) -> str:
        """What all executors wrote to standard error."""
        return self._errors.read_text()

    def calls_of(self, process: subprocess.Popen[str]) -> int:
        """How many calls of an executor's main process have returned."""
        journal = self.journals / str(process.pid)
        return journal.read_bytes().count(b"e ") if journal.exists() else 0

    def wait_for_calls(self, process: subprocess.Popen[str], count: int) -> None:
        """Wait until so many of an executor's calls have returned."""
        wait_until(lambda: self.calls_of(process) >= count or process.poll() is not None)
        assert process.poll() is None, self.errors

    def tooltrail(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run the `tooltrail` command with `--json`: its exit code and its output."""
        completed = subprocess.run(
            (sys.executable, "-m", "tooltrail", *arguments, "--json"),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert "Traceback" not in completed.stderr, completed.stderr
        return completed.returncode, json.loads(completed.stdout)

    def drain(self) -> None:
        """Send all that is left on this host under the site's key."""
        code, stats = self.tooltrail("flush", "--timeout", "60")
        assert (code, stats["waiting"]) == (0, 0)

    def balance(self) -> Balance:
        """Check the equation, with nothing left on this host."""
        assert "Traceback" not in self.errors
        assert not list(self.spool_dir.glob("*/rejected/*"))
        balance = assert_conserved(self.tenant, self.journals)
        sys.stdout.write(f"\n{balance}\n")  # shown by -s
        return balance

    def end(self) -> None:
        """Kill what a failed test has left running, with the workers it has forked: whoever of
        them lives on keeps the pipe open, and reading it would never end.
        """
        for process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_until(is_so: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition is true; fail if it takes too long."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@contextmanager
def site_of(tenant: Tenant, url: str, folder: Path, spool_dir: Path) -> Iterator[Site]:
    site = Site(tenant, url, folder, spool_dir)
    try:
        yield site
    finally:
        site.end()
