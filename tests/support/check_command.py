"""`tooltrail check` as a process against a running server, and a worker that replays meanwhile."""

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit.models import Replay
from audit.work.replay import job
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tenants.slices import UNDER_WAY
from tests.support.factories import Cast
from tests.support.installation import clean_environment
from tests.support.server import LiveServer

_PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Checker:
    """Who runs the command: a key of a tenant, in a folder."""

    server: LiveServer
    cast: Cast
    key: str
    folder: Path

    def start(self, *words: str, **environment: str) -> "subprocess.Popen[str]":
        """Start the command."""
        return self.start_any([sys.executable, "-m", "tooltrail", "check", *words], **environment)

    def start_any(self, command: Sequence[str], **environment: str) -> "subprocess.Popen[str]":
        """Start any command that knows server and key."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=clean_environment(
                TOOLTRAIL_URL=self.server.url, TOOLTRAIL_API_KEY=self.key, **environment
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end, and the replays that it starts."""
        return self.finish(self.start(*words, **environment))

    def finish(self, process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
        """Replay until the command ends."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while process.poll() is None:
            assert time.monotonic() < end, "the command does not end"
            self.replay()
            time.sleep(0.05)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def replay(self) -> int:
        """Run the replays that wait, as the worker does; returns how many there were."""
        tenant_id = self.cast.tenant.id
        with tenant_scope(tenant_id):
            replays = Replay.objects.for_tenant(tenant_id).filter(state__in=UNDER_WAY)
            waiting = list(replays.values_list("id", flat=True))
        for pk in waiting:
            while job.run_slice(tenant_id, pk):
                pass
        return len(waiting)


def make_checker(server: LiveServer, cast: Cast, folder: Path, *scopes: Scope) -> Checker:
    """Someone with a key of a tenant; without scopes: those that the docs name."""
    _, key = create_key(cast.tenant, "ci", scopes or [Scope.READ, Scope.REGISTRY])
    return Checker(server, cast, key, folder)
