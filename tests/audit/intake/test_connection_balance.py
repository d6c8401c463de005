"""Connections are spread over the web processes, and all processes serve."""

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from audit.intake.balance import CHECK_EVERY_S, Balance
from tests.support.installation import (
    Installation,
    announcement,
    end,
    prepared_installation,
    until,
)


class _Clock:
    """A clock that all processes share and the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class _Processes:
    """Some web processes, each with that many requests that never end."""

    def __init__(self, folder: Path, *at_work: int) -> None:
        self.clock = _Clock()
        self.stack = ExitStack()
        self.balances = [Balance(folder, str(n), self.clock) for n in range(len(at_work))]
        for balance, requests in zip(self.balances, at_work, strict=True):
            for _ in range(requests):
                self.stack.enter_context(balance.request())

    def moves(self, answers: int = 10) -> list[int]:
        """For each process: how many of its answers ask the sender to move, after two checks."""
        for balance in self.balances:
            assert not balance.asks_to_move()
        self.clock.now += CHECK_EVERY_S
        for balance in self.balances:
            assert not balance.asks_to_move()  # now each has seen the others
        self.clock.now += CHECK_EVERY_S
        return [sum(each.asks_to_move() for _ in range(answers)) for each in self.balances]


@pytest.mark.parametrize(
    ("at_work", "moves"),
    [
        ((3, 1), [1, 0]),
        ((4, 0), [2, 0]),
        ((0, 4), [0, 2]),
        ((1, 0), [0, 0]),
        ((2, 1), [0, 0]),
        ((2, 2), [0, 0]),
        ((6, 2, 1), [2, 0, 0]),
        ((5,), [0]),
    ],
)
def test_busier_process_moves_half_of_the_difference(
    tmp_path: Path, at_work: tuple[int, ...], moves: list[int]
) -> None:
    assert _Processes(tmp_path, *at_work).moves() == moves


@pytest.mark.slow
def test_connection_counts_by_its_share_of_time(tmp_path: Path) -> None:
    processes = _Processes(tmp_path, 2, 0)
    busy, idle = processes.balances
    for each in (busy, idle):
        assert not each.asks_to_move()
    processes.clock.now += CHECK_EVERY_S
    assert not busy.asks_to_move()
    with idle.request():  # nine tenths of the time
        processes.clock.now += 0.9 * CHECK_EVERY_S
    processes.clock.now += 0.1 * CHECK_EVERY_S
    assert not busy.asks_to_move()


def test_balance_does_not_act_on_a_long_interval(tmp_path: Path) -> None:
    processes = _Processes(tmp_path, 4, 0)
    processes.moves(answers=0)
    processes.clock.now += 60
    assert not processes.balances[0].asks_to_move()


@pytest.mark.sampled("two web processes", 1)
@pytest.mark.slow
def test_dead_process_is_not_counted(tmp_path: Path) -> None:
    holder = (
        "import sys; from pathlib import Path; from audit.intake.balance import Balance;"
        "held = Balance(Path(sys.argv[1]), 'other'); print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    own = Balance(tmp_path, "own")
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(own.request())
        assert _moves_in_a_second(own) > 0
        other.kill()
        other.communicate()
        _moves_in_a_second(own)  # it was alive at the last check
        assert _moves_in_a_second(own) == 0


def _moves_in_a_second(balance: Balance) -> int:
    moves = 0
    for _ in range(30):
        time.sleep(CHECK_EVERY_S / 10)
        moves += balance.asks_to_move()
    return moves


def test_connections_are_not_moved_without_a_shared_file(tmp_path: Path) -> None:
    folder = tmp_path / "a file"
    folder.touch()
    balance = Balance(folder, "own")
    with balance.request():
        assert not balance.asks_to_move()
    assert not balance.asks_to_move()


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with prepared_installation() as created:
        yield created


@pytest.mark.sampled("two web processes", 1)
@pytest.mark.slow
def test_connections_accepted_by_one_process_are_served_by_both(installation: Installation) -> None:
    """The clients only obey `Connection: close` in the answers."""
    process = installation.up("--json", "--dev-tenant", "acme", TOOLTRAIL_WEB_PROCESSES="2")
    facts = announcement(process)
    address = urlsplit(facts["url"])
    assert address.hostname is not None
    assert address.port is not None
    _, serving, stopped = installation.processes("config.process.web_server")
    stopped.suspend()
    # The kernel decides which process gets a connection: about half go to each.
    opened: dict[int, http.client.HTTPConnection] = {}
    for _ in range(40):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        connection.connect()
        opened[connection.sock.getsockname()[1]] = connection
    until(lambda: len(_accepted(address.port).get(serving.pid, [])) >= 4)
    connections = [opened.pop(port) for port in _accepted(address.port)[serving.pid][:4]]
    for connection in opened.values():
        connection.close()
    stopped.resume()
    stop = threading.Event()
    refused: list[int] = []

    def send(connection: http.client.HTTPConnection) -> None:
        headers = {
            "Authorization": f"Bearer {facts['api_key']}",
            "Content-Type": "application/x-ndjson",
        }
        while not stop.is_set():
            connection.request("POST", "/api/v1/events", b'{"type": "none"}\n' * 500, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                refused.append(answer.status)

    threads = [threading.Thread(target=send, args=(each,)) for each in connections]
    for thread in threads:
        thread.start()
    try:
        assert until(lambda: set(_accepted(address.port)) == {serving.pid, stopped.pid})
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for connection in connections:
            connection.close()
    assert refused == []
    assert end(process) == 0


def _accepted(port: int | None) -> dict[int, list[int]]:
    """Each process's connections to a port, by the ports of their clients."""
    clients: dict[int, list[int]] = {}
    for each in psutil.net_connections("tcp"):
        if not (each.status == psutil.CONN_ESTABLISHED and each.laddr and each.raddr and each.pid):
            continue
        if each.laddr.port == port:
            clients.setdefault(each.pid, []).append(each.raddr.port)
    return clients
