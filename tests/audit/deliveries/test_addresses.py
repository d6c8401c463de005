"""No delivery reaches an address that is not public, unless the operator allows it."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from audit.deliveries import process
from audit.deliveries.sender.job import Answer, Job
from config import env
from config.http.addresses import may_connect
from config.instance import BASE_DIR
from tests.support.deliveries import HOST, MESSAGE, Receiver, allow, webhook_receiver

SECRET = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "224.0.1.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:db8::1",
    "2001:10::1",
    "2001:20::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "2606:4700::1111%lo",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "2a00::1"]
NO_ADDRESS = ["", "localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "8.8.8.8 ", "١.1.1.1"]

ANY_PORT = "{port}"
CORPUS = [
    "http://127.0.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0x0.0x0.0x1:{port}/",
    "http://017700000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST.:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://ⓛocalhost:{port}/",
    "http://example.com@127.0.0.1:{port}/",
    "http://example.com:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@example.com/",
    "http://127.0.0.1:{port}?@example.com/",
    "http://127.0.0.1:{port}%2f@example.com/",
    "http:127.0.0.1:{port}/",
    "http:////127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\r\nHost: x/",
    "//127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.google.internal/",
    "http://10.0.0.1/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
    "unix:///{socket}",
    "http+unix://{socket}/",
    "http://unix:{socket}:/",
]


def webhook(url: str, job_id: str = "1") -> Job:
    return Job(job_id, "webhook", "c", {"url": url}, {"secret": SECRET}, MESSAGE, timeout_s=3.0)


def attempt(url: str) -> Answer:
    return process.send([webhook(url)])["1"]


@pytest.mark.parametrize("host", [*PRIVATE, *NO_ADDRESS])
def test_private_address_is_refused(host: str) -> None:
    assert not may_connect(host, 443, [])


@pytest.mark.parametrize("host", PUBLIC)
def test_public_address_is_allowed(host: str) -> None:
    assert may_connect(host, 443, [])


def test_operator_allows_networks_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "10.1.0.0/16, 127.0.0.1:25 [fd00::]:587 fd01::/16")
    allowed = env.openings("TOOLTRAIL_DELIVERY_ALLOW")
    assert [
        may_connect(host, port, allowed)
        for host, port in (
            ("10.1.2.3", 80),
            ("127.0.0.1", 25),
            ("fd00::", 587),
            ("fd01::5", 1),
        )
    ] == [True] * 4
    assert [
        may_connect(host, port, allowed)
        for host, port in (
            ("10.2.0.1", 80),
            ("127.0.0.1", 5432),
            ("127.0.0.2", 25),
            ("fd00::", 25),
            ("::ffff:10.1.2.3", 80),
        )
    ] == [False] * 5


@pytest.mark.parametrize(
    "text", ["10.0.0.1/8", "nowhere", "10.0.0.1:0", "10.0.0.1:x", "[::1]:99999"]
)
def test_invalid_setting_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    allow(monkeypatch, text)
    with pytest.raises(env.EnvironmentVariableError, match="TOOLTRAIL_DELIVERY_ALLOW"):
        env.openings("TOOLTRAIL_DELIVERY_ALLOW")


class Listeners:
    """Listens on a port of both loopback addresses and on a socket file; counts connections."""

    def __init__(self, folder: Path) -> None:
        self.count = 0
        self.path = str(folder / "s")
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = probe.getsockname()[1]
        self._sockets = [
            self._listen(socket.AF_INET, ("0.0.0.0", self.port)),
            self._listen(socket.AF_UNIX, self.path),
        ]
        with suppress(OSError):  # a machine may have no IPv6
            self._sockets.append(self._listen(socket.AF_INET6, ("::1", self.port)))

    def _listen(self, family: int, address: tuple[str, int] | str) -> socket.socket:
        listener = socket.socket(family)
        listener.bind(address)
        listener.listen()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.count += 1
            connection.close()

    def close(self) -> None:
        for listener in self._sockets:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[Listeners]:
    listeners = Listeners(tmp_path)
    yield listeners
    listeners.close()


def test_no_url_of_the_corpus_gets_through(
    listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch)
    urls = [each.format(port=listeners.port, socket=listeners.path) for each in CORPUS]
    answers = process.send([webhook(url, str(number)) for number, url in enumerate(urls)])
    assert listeners.count == 0
    got_through = [
        (url, answers.get(str(number)))
        for number, url in enumerate(urls)
        if str(number) not in answers or answers[str(number)].status is not None
    ]
    assert got_through == []
    assert answers["0"].is_refused
    assert answers["0"].text == "The operator does not allow deliveries to this address."


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(
    listeners: Listeners, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    with webhook_receiver() as receiver:
        allow(monkeypatch, receiver.url.split("/")[2])
        receiver.answers = [status]
        receiver.headers = {"Location": f"http://127.0.0.1:{listeners.port}/"}
        answer = attempt(receiver.url)
    assert (answer.is_delivered, answer.status) == (False, status)
    assert listeners.count == 0


def test_proxies_of_the_environment_are_not_used(
    listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, f"127.0.0.1:{listeners.port}")
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{listeners.port}")
    assert not attempt("http://192.0.2.1/").is_delivered
    assert listeners.count == 0
    assert not {"HTTP_PROXY", "DATABASE_URL"} & set(process.environment())


REBINDING = """
import json, socket, sys
from audit.deliveries.sender import guard
from config import env
guard.install(env.openings("TOOLTRAIL_DELIVERY_ALLOW"))
from audit.deliveries.sender.attempt import attempt
from audit.deliveries.sender.job import Job
answers = iter(sys.argv[2:])
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, port, *rest, **more: real(next(answers), port, *rest, **more)
job = Job(**json.loads(sys.argv[1]))
print(json.dumps([attempt(job).is_delivered for _ in sys.argv[2:]]))
"""
"""A name whose address is another one each time that it is resolved."""


def test_each_answer_of_the_dns_is_checked(
    listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    with webhook_receiver() as receiver:
        port = receiver.url.split("/")[2].partition(":")[2]
        monkeypatch.setenv("TOOLTRAIL_DELIVERY_ALLOW", f"127.0.0.1:{port}")
        job = {
            "id": "1",
            "kind": "webhook",
            "channel_id": "c",
            "settings": {"url": f"http://rebinding.example:{port}/"},
            "secrets": {"secret": SECRET},
            "message": MESSAGE,
            "timeout_s": 2.0,
        }
        done = subprocess.run(
            [sys.executable, "-c", REBINDING, json.dumps(job), "127.0.0.1", "127.0.0.2", "::1"],
            cwd=BASE_DIR,
            env=process.environment(),
            capture_output=True,
            check=True,
        )
        assert json.loads(done.stdout) == [True, False, False]
        assert len(receiver.requests) == 1


REFUSED = """
import ctypes, os, socket, subprocess, sys
from audit.deliveries.sender import guard
guard.install([])
path, port = sys.argv[1], int(sys.argv[2])
file = socket.socket(socket.AF_UNIX)
tcp = socket.socket()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
acts = {
    "unix": lambda: file.connect(path),
    "name": lambda: tcp.connect(("localhost", port)),
    "connect_ex": lambda: tcp.connect_ex(("127.0.0.1", port)),
    "bytes": lambda: tcp.connect((b"127.0.0.1", port)),
    "sendto": lambda: udp.sendto(b"x", ("127.0.0.1", port)),
    "sendmsg": lambda: udp.sendmsg([b"x"], [], 0, ("127.0.0.1", port)),
    "fast open": lambda: tcp.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port)),
    "run": lambda: subprocess.run(["true"]),
    "system": lambda: os.system("true"),
    "fork": lambda: os.fork(),
    "library": lambda: ctypes.CDLL(None),
    "write": lambda: open(path + ".txt", "w"),
    "listen": lambda: tcp.bind(("127.0.0.1", 0)),
}
for name, act in acts.items():
    try:
        act()
    except guard.RefusedError:
        continue
    print(name)
"""


def test_process_refuses_other_ways_out(listeners: Listeners) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, listeners.path, str(listeners.port)],
        cwd=BASE_DIR,
        env=process.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert listeners.count == 0


def test_process_that_sends_knows_no_database() -> None:
    script = "import sys, audit.deliveries.sender.attempt; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=BASE_DIR, capture_output=True, text=True, check=True
    )
    assert "django" not in done.stdout
    assert "psycopg" not in done.stdout


def test_receiver_gets_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook_receiver() as receiver:
        assert isinstance(receiver, Receiver)
        allow(monkeypatch, HOST)
        assert attempt(receiver.url).is_delivered
