"""JSON nested without end is refused before a decoder's recursion leaves a thread's stack.

CPython counts recursion in C for a main thread's stack of 8 MiB. A web server's threads have
2 MiB: there the process ends with a segmentation fault, and with it every request it serves.
"""

import http.client
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest

from audit.decode import is_too_deep
from config.instance import BASE_DIR
from tests.audit.posting import NDJSON, lines
from tests.audit.test_bombs import web_process
from tests.factories import Cast, make_call, make_ingest_key
from tests.server import LiveServer, running_server

STACK_BYTES = 2 * 1024 * 1024  # of a thread of the web server: what Rust gives it

IN_A_SMALL_THREAD = """
import os, sys, threading
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
from audit.decode import RefusedLineError, TooDeepError, decode_line
from audit.instants import Instants
from audit.otlp.conventions import _json
from audit.otlp.otlp_json import read_json
from audit.otlp.spans import UnreadableTraceError

body = sys.stdin.buffer.read()
said = []

def decode():
    try:
        if sys.argv[1] == "otlp":
            read_json(body)
        elif sys.argv[1] == "text":
            said.append("kept as text" if _json(body.decode()) == body.decode() else "JSON")
            return
        else:
            decode_line(body, Instants())
    except (TooDeepError, UnreadableTraceError, RefusedLineError) as error:
        said.append(type(error).__name__)

threading.stack_size(int(sys.argv[2]))
thread = threading.Thread(target=decode)
thread.start()
thread.join()
print(*said)
"""

END = (
    b'{"type":"toolExecutionEnd","invocation_id":"0192f7a0-0000-7000-8000-000000000001",'
    b'"tool_name":"t","started_at":"2026-11-20T10:00:00Z","ended_at":"2026-11-20T10:00:01Z",'
    b'"output":%b}'
)


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"0" + closing * depth


@pytest.mark.parametrize("depth", [20_000, 400_000])
@pytest.mark.parametrize(
    ("decoder", "around", "expected"),
    [
        ("otlp", b'{"resourceSpans":%b}', "UnreadableTraceError"),
        ("otlp", b'{"x":"\\ud800","resourceSpans":%b}', "UnreadableTraceError"),
        ("line", END, "TooDeepError"),
        ("line", b'{"type":"toolExecutionEnd","unknown":%b}', "TooDeepError"),
        ("line", b'{"type":"gap","x":"\\ud800","unknown":%b}', "TooDeepError"),
        ("text", b"%b", "kept as text"),
    ],
)
@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")])
def test_no_decoder_leaves_the_stack_of_a_web_thread(
    decoder: str, around: bytes, expected: str, depth: int, shape: tuple[bytes, bytes]
) -> None:
    body = around.replace(b"%b", nested(depth, *shape))
    done = subprocess.run(
        [sys.executable, "-c", IN_A_SMALL_THREAD, decoder, str(STACK_BYTES)],
        input=body,
        capture_output=True,
        cwd=BASE_DIR,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout.decode().strip()) == (0, expected), done.stderr[-500:]


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        (b'{"a":"' + b"[" * 100, False),  # cut off within a text
        (b'{"a":"' + b"[" * 100 + b"\\", False),
        (b"[" * 64, False),
        (b"[" * 65, True),  # cut off, and already too deep
        (b"[]" * 100 + b"[" * 10, False),
        (b"]" * 100 + b"[" * 64, False),  # no decoder gets beyond the first
    ],
)
def test_depth_of_what_is_no_json_is_that_of_its_beginning(text: bytes, deep: bool) -> None:
    assert is_too_deep(text, 64) is deep


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running_server() as server:
        yield server


@pytest.mark.parametrize(
    ("path", "content_type", "answer"),
    [
        ("/v1/traces", "application/json", HTTPStatus.BAD_REQUEST),
        ("/api/v1/events", NDJSON, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_thirty_deep_bodies_at_once_end_no_process(
    server: LiveServer, acme: Cast, path: str, content_type: str, answer: HTTPStatus
) -> None:
    key = make_ingest_key(acme.tenant)

    def send(path: str, kind: str, body: bytes) -> int:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
        with closing(client):
            client.request("POST", path, body, headers)
            return client.getresponse().status

    process = web_process(server)
    around = b'{"resourceSpans":%b}' if path == "/v1/traces" else END
    body = around.replace(b"%b", nested(20_000))
    with ThreadPoolExecutor(10) as many:
        answers = list(many.map(lambda _: send(path, content_type, body), range(30)))
    assert set(answers) <= {answer, HTTPStatus.SERVICE_UNAVAILABLE}, answers
    assert answer in answers
    assert process.is_running()
    assert web_process(server) == process
    assert send("/api/v1/events", NDJSON, lines(make_call())) == HTTPStatus.OK
