"""Compressed bodies that would expand without limit are rejected early, over real HTTP.

Memory is the process's high-water mark, as the kernel reports it. The time is printed
(`pytest -s`) and not tested.
"""

import contextlib
import gzip
import http.client
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from audit.events.limits import MAX_COMPRESSED_BYTES, MAX_INFLATED_BYTES
from config.zstd import zstd
from tests.support.event_requests import NDJSON, lines
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.server import LiveServer, running_server, web_process

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
GROWTH_MAX = 32 * MIB


def gzip_of_zeros(size: int) -> bytes:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    parts = [squeezer.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join(parts) + squeezer.flush()


def zstd_of_zeros(size: int) -> bytes:
    squeezer = zstd.ZstdCompressor(level=19)
    parts = [squeezer.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join(parts) + squeezer.flush()


def just_below_the_ratio(size: int) -> bytes:
    """Lines that compress to about a ninetieth: only their size exceeds a limit."""
    return b"".join(b"%064d" % (number % 9) * 16 + b"\n" for number in range(size // 1025))


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip, 1 GiB": ("gzip", lambda: gzip_of_zeros(1024 * MIB)),
    "deflate, 1 GiB": ("deflate", lambda: zlib.compress(bytes(512 * MIB)) * 2),
    "zstd, 1 GiB": ("zstd", lambda: zstd_of_zeros(1024 * MIB)),
    "gzip in many members": ("gzip", lambda: gzip.compress(bytes(MIB)) * 4000),
    "zstd in many frames": ("zstd", lambda: zstd.compress(bytes(MIB)) * 40_000),
    "plain, too large": ("identity", lambda: bytes(2 * MAX_COMPRESSED_BYTES)),
    "no bomb, too large inflated": (
        "gzip",
        lambda: gzip.compress(just_below_the_ratio(2 * MAX_INFLATED_BYTES), 1),
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running_server() as server:
        yield server


def high_water(process: psutil.Process) -> int:
    """The largest memory use of the process in bytes since `reset`."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = (each for each in status.splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux' /proc")
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.generated(2)
def test_decompression_bomb_is_rejected_with_little_memory(
    server: LiveServer, acme: Cast, name: str
) -> None:
    encoding, make = BOMBS[name]
    body = make()
    key = make_ingest_key(acme.tenant)

    def send(body: bytes, encoding: str) -> int:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": NDJSON,
            "Content-Encoding": encoding,
        }
        with contextlib.closing(client):
            with contextlib.suppress(
                BrokenPipeError, ConnectionResetError
            ):  # the server may answer before all is sent
                client.request("POST", "/api/v1/events", body, headers)
            return client.getresponse().status

    process = web_process(server)
    many = [event for _ in range(200) for event in make_call()]
    assert (
        send(gzip.compress(lines(many)), "gzip") == HTTPStatus.OK
    )  # so that all modules are loaded
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # reset the high-water mark
    before = process.memory_info().rss
    began = time.perf_counter()
    status = send(body, encoding)
    took_ms = (time.perf_counter() - began) * 1000
    grown = high_water(process) - before
    line = f"{name}: {len(body):,} bytes, {took_ms:.0f} ms, {grown / MIB:.1f} MiB more"
    sys.stdout.write(f"\n{line}\n")
    assert status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert grown <= GROWTH_MAX
    assert send(lines(make_call()), "identity") == HTTPStatus.OK
