"""Deeply nested JSON is rejected before a decoder's recursion overflows a thread's stack.

CPython limits recursion in C for a main thread's stack of 8 MiB. Threads of the web server have
2 MiB: there the process ends with a segmentation fault, and all its requests fail.
"""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import Client

from audit.events.decode import is_too_deep
from audit.models import RejectedEvent
from config.instance import BASE_DIR
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.event_requests import NDJSON, lines
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.server import LiveServer, running_server, web_process
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

STACK_BYTES = 2 * 1024 * 1024  # of a thread of the web server: Rust's default

IN_SMALL_THREADS = """
import json, os, sys, threading
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
from audit.events.decode import RefusedLineError, TooDeepError, decode_line
from audit.events.instants import Instants
from audit.intake.otlp.facts import _json
from audit.intake.otlp.otlp_json import read_json
from audit.events.spans import UnreadableTraceError

def decode(number, decoder, body):
    try:
        if decoder == "otlp":
            outcome = read_json(body)
        elif decoder == "text":
            outcome = "kept as text" if _json(body.decode()) == body.decode() else "JSON"
        else:
            outcome = decode_line(body, Instants())
    except (TooDeepError, UnreadableTraceError, RefusedLineError) as error:
        outcome = type(error).__name__
    print(json.dumps([number, str(outcome)[:100]]), flush=True)

threading.stack_size(int(sys.argv[1]))
for number, line in enumerate(sys.stdin):
    decoder, around, opening, depth, closing = json.loads(line)
    body = around.replace("%b", opening * depth + "0" + closing * depth).encode()
    thread = threading.Thread(target=decode, args=(number, decoder, body))
    thread.start()
    thread.join()
"""

END = (
    b'{"type":"toolExecutionEnd","invocation_id":"0192f7a0-0000-7000-8000-000000000001",'
    b'"tool_name":"t","started_at":"2026-11-20T10:00:00Z","ended_at":"2026-11-20T10:00:01Z",'
    b'"output":%b}'
)


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"0" + closing * depth


DECODERS = [
    ("otlp", b'{"resourceSpans":%b}', "UnreadableTraceError"),
    ("otlp", b'{"x":"\\ud800","resourceSpans":%b}', "UnreadableTraceError"),
    ("line", END, "TooDeepError"),
    ("line", b'{"type":"toolExecutionEnd","unknown":%b}', "TooDeepError"),
    ("line", b'{"type":"gap","x":"\\ud800","unknown":%b}', "TooDeepError"),
    ("text", b"%b", "kept as text"),
]
SHAPES = [("[", "]"), ('{"a":', "}"), ("[", "")]


@pytest.mark.slow
def test_decoders_do_not_overflow_the_stack_of_a_web_thread() -> None:
    """One process for all bodies, a thread for each. The first missing body crashed it."""
    cases = [
        ((decoder, around.decode(), opening, depth, closing), expected)
        for decoder, around, expected in DECODERS
        for depth in (20_000, 400_000)
        for opening, closing in SHAPES
    ]
    completed = subprocess.run(
        [sys.executable, "-c", IN_SMALL_THREADS, str(STACK_BYTES)],
        input="".join(json.dumps(case) + "\n" for case, _ in cases),
        capture_output=True,
        text=True,
        cwd=BASE_DIR,
        check=False,
        timeout=120,
    )
    outcomes = dict(json.loads(line) for line in completed.stdout.splitlines())
    for number, (case, expected) in enumerate(cases):
        assert outcomes.get(number) == expected, (case, completed.stderr[-500:])
    assert completed.returncode == 0


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        (b'{"a":"' + b"[" * 100, False),  # ends inside a text
        (b'{"a":"' + b"[" * 100 + b"\\", False),
        (b"[" * 64, False),
        (b"[" * 65, True),  # incomplete, and already too deep
        (b"[]" * 100 + b"[" * 10, False),
        (b"]" * 100 + b"[" * 64, False),  # decoders stop at the first bracket
    ],
)
def test_depth_of_invalid_json_is_measured_from_its_beginning(text: bytes, deep: bool) -> None:
    assert is_too_deep(text, 64) is deep


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running_server() as server:
        yield server


@pytest.mark.sampled("large or many", 2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "content_type", "answer"),
    [
        ("/v1/traces", "application/json", HTTPStatus.BAD_REQUEST),
        ("/api/v1/events", NDJSON, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_thirty_concurrent_deep_bodies_crash_no_process(
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


def deep_protobuf(depth: int, *, attribute_of_a_log: bool = False) -> bytes:
    """An attribute of arrays within arrays: `AnyValue { ArrayValue { AnyValue { … } } }`."""
    value = b""
    for _ in range(depth):
        value = field(1, value)  # ArrayValue.values
        value = field(5, value)  # AnyValue.array_value
    attribute = field(1, b"deep") + field(2, value)
    span = field(6 if attribute_of_a_log else 9, attribute)
    return field(1, field(2, field(2, span)))  # resource_spans, scope_spans, spans


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    size, length = len(data), b""
    while size > 127:
        length += bytes((size & 127 | 128,))
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + data


@pytest.mark.sampled("large or many", 2)
@pytest.mark.slow
def test_deep_bodies_to_any_api_crash_no_process(server: LiveServer, acme: Cast) -> None:
    scopes = list(Scope)
    key = create_key(acme.tenant, "deep", scopes, created_by=acme.admin)[1]
    json_text = nested(20_000)
    doors = (
        ("/v1/traces", "application/x-protobuf", deep_protobuf(4_000)),
        ("/v1/traces", "application/json", json_text),
        ("/v1/logs", "application/x-protobuf", deep_protobuf(4_000, attribute_of_a_log=True)),
        ("/v1/logs", "application/json", json_text),
        ("/api/v1/events", NDJSON, b'{"type":' + json_text + b"}"),
        ("/api/v1/tools", "application/json", b'{"tools":[%b]}' % json_text),
        ("/api/v1/tools", "application/json", b'{"tools":[{"name":%b}]}' % json_text),
        ("/api/v1/registry", "application/json", json_text),
        ("/api/v1/registry", "application/json", b'[{"name":"f","inputSchema":%b}]' % json_text),
        ("/api/v1/reports", "application/json", json_text),
        ("/api/v1/reports", "application/json", b'{"from":%b}' % json_text),
    )  # fmt: skip  # a table, one case after the other
    process = web_process(server)
    for path, kind, body in doors:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
        with closing(client):
            client.request("POST", path, body, headers)
            status = client.getresponse().status
        assert 200 <= status < 500, (path, body[:60])
        assert status not in {401, 403, 404}, (path, body[:60])
        assert process.is_running(), (path, body[:60])
    assert web_process(server) == process


@pytest.mark.sampled("large or many", 2)
@pytest.mark.slow
def test_deep_form_values_crash_no_process(server: LiveServer, acme: Cast) -> None:
    acme.admin.is_staff = True
    acme.admin.save()
    browser = Client()
    browser.force_login(acme.admin)
    token = "x" * 32
    cookie = f"sessionid={browser.cookies['sessionid'].value}; csrftoken={token}"
    with tenant_scope(acme.tenant.id):
        contract = ToolContract.model_validate(make_contract())
        register_contracts(acme.tenant, [contract], Publisher(key_id="key"))
        tool = Tool.objects.get(tenant=acme.tenant)
        create_draft(tool, contract, Publisher(acme.admin))
    send_events(acme.tenant, [{"type": "neither"}], key=make_ingest_key(acme.tenant))
    with tenant_scope(acme.tenant.id):
        line = RejectedEvent.objects.for_tenant(acme.tenant.id).get()
    text = nested(20_000).decode()
    documents = dict.fromkeys(("input_schema", "output_schema", "meta", "examples"), text)
    forms = (
        (f"/tools/{tool.pk}/draft", {"revision": "1", "description": "d", **documents}),
        (f"/tools/{tool.pk}/draft/check", {"revision": "1", "description": "d", **documents}),
        (f"/admin/tools_registry/tool/{tool.pk}/change/", {"description": "d", **documents}),
        ("/settings/redaction", {"names": "a", "sample": text, "try": "1", "otlp": "on"}),
        (f"/inbox/{line.id}/send", {"line": '{"type":"gap","x":' + text + "}"}),
        ("/tools/import", {"text": text}),
        ("/tools/import", {"text": '[{"name":"f","inputSchema":' + text + "}]"}),
        ("/calls/search", {"q": "", "needle": text[:200], "reason": "r"}),
    )
    process = web_process(server)
    for path, form in forms:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        headers = {
            "Cookie": cookie,
            "X-CSRFToken": token,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        with closing(client):
            client.request("POST", path, urlencode(form), headers)
            answer = client.getresponse()
            page = answer.read()
        assert answer.status < HTTPStatus.INTERNAL_SERVER_ERROR, path
        assert answer.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}, (path, page[:300])
        assert process.is_running(), path
    assert web_process(server) == process
