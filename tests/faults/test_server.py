"""The server killed under load: what it acknowledged is there once, and it comes back by itself."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from http import HTTPStatus

import psutil

from config.instance import WEB_PROCESSES
from tests.faults.load import TRANSIENT, Load, assert_kept
from tests.installation import Installation, announcement, end, new_installation, until


def test_kills_of_web_processes_and_of_postgresql_lose_and_double_nothing(full: bool) -> None:
    faults = ["web"] * (100 if full else 4) + ["database"] * (50 if full else 2)
    random.shuffle(faults)
    with new_installation() as installation:
        process = installation.up("--json", "--dev-tenant", "acme")
        facts = announcement(process)
        load = Load(facts["url"], facts["api_key"])
        senders = [threading.Thread(target=load.run) for _ in range(4)]
        for sender in senders:
            sender.start()
        try:
            for fault in faults:
                load.wait_for(random.randint(4, 12))
                if fault == "web":
                    kill_a_web_process(installation, process.pid)
                else:
                    stop_at_once(installation)
            load.wait_for(12)
        finally:
            load.stop.set()
            for sender in senders:
                sender.join()
        assert load.statuses <= {HTTPStatus.OK, *TRANSIENT}
        assert_kept(installation, load)
        assert end(process) == 0


def kill_a_web_process(installation: Installation, supervisor: int) -> None:
    """Kill -9 one of those that serve, not the one that looks after them.

    Not before all serve: the web server gives up when one dies at once again, and is then
    started anew as a whole, which is what most kills would hit otherwise.
    """

    def is_killed() -> bool:
        try:
            parents = [
                child
                for child in psutil.Process(supervisor).children()
                if "granian" in " ".join(child.cmdline())
            ]
            serving = [each for one in parents for each in one.children()]
            if len(serving) < WEB_PROCESSES or not all(has_served(installation, serving)):
                return False
            random.choice(serving).kill()
        except psutil.NoSuchProcess:  # it is just being replaced
            return False
        return True

    until(is_killed)


def has_served(installation: Installation, processes: list[psutil.Process]) -> Iterator[bool]:
    """Of each, whether it has answered a request yet: that it counts in a file of its own."""
    for process in processes:
        yield (installation.var / "metrics" / str(process.pid)).exists()


def stop_at_once(installation: Installation) -> None:
    """What `pg_ctl stop -m immediate` does: as if the power had gone."""
    pid = until(installation.postgres.running_pid)
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    until(lambda: installation.postgres.running_pid() != pid)
