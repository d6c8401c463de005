"""The server's own spans, as a real receiver gets them from a real server."""

import gzip
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.installation import (
    Installation,
    announcement,
    end,
    new_installation,
    prepared_installation,
    until,
)
from tests.support.installation_requests import status_code

pytestmark = [pytest.mark.slow, pytest.mark.sampled("telemetry", 1)]

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Receiver:
    """An OTLP receiver on the loopback interface, and the spans it got."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                    outer.resources.append(each.resource)
                    outer.spans += [span for scope in each.scope_spans for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever)
    thread.start()
    yield receiver
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def start(
    installation: Installation, receiver: Receiver, **more: str
) -> tuple[Any, dict[str, str]]:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    process = installation.up("--json", "--dev-tenant", "acme", **variables | more)
    return process, announcement(process)


def test_requests_and_their_statements_are_spans(receiver: Receiver) -> None:
    with prepared_installation() as installation:
        process, facts = start(installation, receiver, TOOLTRAIL_TELEMETRY="true")
        headers = {
            "Authorization": f"Bearer {facts['api_key']}",
            "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
        }
        path = "/api/v1/calls?q=secret-word"
        assert status_code(facts["url"] + path, **headers) == 200
        otlp = urllib.request.Request(f"{facts['url']}/v1/traces", b"", headers=headers)
        otlp.add_header("Content-Type", "application/x-protobuf")
        with urllib.request.urlopen(otlp) as answer:
            assert answer.status == 200
        until(lambda: receiver.named("GET /api/v1/calls"))
        until(lambda: receiver.named("audit.tasks.keep_ledgers"))
        assert end(process) == 0
    (request,) = receiver.named("GET /api/v1/calls")
    assert request.trace_id.hex() == TRACE
    assert attributes(request) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/api/v1/calls",
    }
    statements = [span for span in receiver.spans if span.parent_span_id == request.span_id]
    assert any("FROM invocation" in attributes(span)["db.query.text"] for span in statements)
    job = receiver.named("audit.tasks.keep_ledgers")[0]
    assert attributes(job) == {"messaging.destination.name": "ledger"}
    assert [span for span in receiver.spans if span.parent_span_id == job.span_id]
    assert "secret-word" not in str(receiver.spans)
    assert not [span for span in receiver.spans if "/v1/traces" in span.name]
    names = {each.key: each.value.string_value for each in receiver.resources[0].attributes}
    assert names["service.name"] == "tooltrail"


def test_nothing_is_sent_by_default(receiver: Receiver) -> None:
    with prepared_installation() as installation:
        process, facts = start(installation, receiver)
        assert status_code(f"{facts['url']}/login") == 200
        for web in installation.processes("config.process.web_server"):
            assert not [each for each in web.memory_maps() if "opentelemetry/sdk" in each.path]
        assert end(process) == 0
    assert receiver.spans == []


def test_missing_extra_is_named(tmp_path: Any) -> None:
    """A package that shadows OpenTelemetry and cannot be found stands for its absence."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, package=None: (\n"
        "    None if name == 'opentelemetry.sdk' else real(name, package))\n"
    )
    with new_installation() as installation:
        message = installation.refusal(TOOLTRAIL_TELEMETRY="true", PYTHONPATH=str(tmp_path))
    assert "install the extra `telemetry`" in message
