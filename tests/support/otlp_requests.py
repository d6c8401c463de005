"""Requests to the OTLP routes, and what index and log hold afterwards."""

import json
import re
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.test import Client
from google.protobuf import json_format
from google.rpc import status_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from audit.intake.otlp.signals import SIGNALS
from audit.log.payload import read_events
from audit.models import Invocation
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.otlp.environment import FIXTURES

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """The decoded response: `rejected` items and a `message`, or a Status's `message`."""

    status_code: int
    content_type: str
    headers: dict[str, str]
    rejected: int
    message: str
    body: bytes


def post(
    key: str, body: bytes, media_type: str = PROTOBUF, *, path: str = "/v1/traces", **headers: str
) -> Answer:
    """Post a body as an exporter does. `headers` are given as `content_encoding="gzip"`."""
    given = {"x_api_key": key, **headers} if key else headers
    answer = Client().generic(
        "POST",
        path,
        body,
        headers={name.replace("_", "-"): value for name, value in given.items()},
        CONTENT_TYPE=media_type,  # the client leaves it out where a body is empty
    )
    kind = answer["Content-Type"]
    if kind == JSON:
        document = json.loads(answer.content)
        partial = document.get("partialSuccess", {})
        rejected = sum(int(value) for name, value in partial.items() if name != "errorMessage")
        message = partial.get("errorMessage", document.get("message", ""))
    elif answer.status_code == 200:
        signal = SIGNALS[path]
        response = signal.response.FromString(answer.content)
        rejected = getattr(response.partial_success, signal.rejected)
        message = response.partial_success.error_message
    else:
        rejected, message = 0, status_pb2.Status.FromString(answer.content).message
    return Answer(
        answer.status_code, kind, dict(answer.headers.items()), rejected, message, answer.content
    )


def span(name: str = "execute_tool get_weather", **members: Any) -> dict[str, Any]:
    """An OTLP/JSON span: a GenAI tool call of a minute ago. `attributes` replace its own."""
    started = int((time.time() - 60) * 1e9)
    attributes = members.pop(
        "attributes",
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"},
    )
    return {
        "traceId": secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(started),
        "endTimeUnixNano": str(started + 25_000_000),
        "attributes": pairs(attributes),
        **members,
    }


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP/JSON has them; a value that is an object already is taken as it is."""
    return [
        {"key": key, "value": value if isinstance(value, dict) else {"stringValue": value}}
        for key, value in attributes.items()
    ]


def request(*spans: dict[str, Any], scope: str = "my-agent", **resource: str) -> bytes:
    """An OTLP/JSON body."""
    scope_spans = {"scope": {"name": scope}, "spans": list(spans)}
    return json.dumps(
        {
            "resourceSpans": [
                {"resource": {"attributes": pairs(resource)}, "scopeSpans": [scope_spans]}
            ]
        }
    ).encode()


def fixture(name: str, now: datetime) -> bytes:
    """A captured body, as if it had been captured a moment before `now`."""
    body = (FIXTURES / name).read_bytes()
    if name.endswith(".json"):
        request = json_format.Parse(body, trace_service_pb2.ExportTraceServiceRequest())
    else:
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
    spans = [
        each
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for each in scope_spans.spans
    ]
    later = int(now.timestamp() * 1e9) - max(each.end_time_unix_nano for each in spans)
    if name.endswith(".json"):
        return re.sub(
            rb'("(?:start|end)?[tT]imeUnixNano": *)"(\d+)"',
            lambda match: b'%b"%d"' % (match[1], int(match[2]) + later),
            body,
        )
    for each in spans:
        each.start_time_unix_nano += later
        each.end_time_unix_nano += later
        for event in each.events:
            event.time_unix_nano += later
    return bytes(request.SerializeToString())


@dataclass(frozen=True, slots=True)
class Stored:
    """A call with its two events, read from the log."""

    row: Invocation
    start: dict[str, Any]
    end: dict[str, Any]

    @property
    def output(self) -> Any:
        """The result in the end event: data, or the error."""
        output = self.end.get("output", {})
        return output.get("data", output.get("error"))


def calls(tenant: Tenant) -> list[Stored]:
    """The tenant's calls, by name and start."""
    with tenant_scope(tenant.id):
        stored = []
        for row in Invocation.objects.for_tenant(tenant.id).order_by("tool_name", "started_at"):
            assert row.start_batch_id and row.end_batch_id
            places = (row.start_batch_id, row.start_pos or 0), (row.end_batch_id, row.end_pos or 0)
            events = read_events(tenant.id, places)
            start, end = (json.loads(events[place].raw or b"null") for place in places)
            stored.append(Stored(row, start, end))
        return stored


def by_name(tenant: Tenant) -> dict[str, Stored]:
    """The tenant's calls by tool, each of which was called once."""
    stored = calls(tenant)
    named = {call.row.tool_name: call for call in stored}
    assert len(named) == len(stored), [call.row.tool_name for call in stored]
    return named
