"""A Tooltrail of its own, spans sent to it, and the calls that it shows of them."""

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.frameworks.calls import SeenCall, of_documents
from bench.own_site import own_site


class Tooltrail:
    """A running installation, with a key that may send and read."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    def show(self, spans: ExportTraceServiceRequest, *, one_by_one: bool) -> list[SeenCall]:
        """The calls of these spans, sent under new trace ids.

        In one request, or each span in a request of its own, children before their parents.
        """
        fresh = ExportTraceServiceRequest()
        fresh.CopyFrom(spans)
        traces: dict[bytes, bytes] = {}
        for each in (span for scope in _scopes(fresh) for span in scope.spans):
            each.trace_id = traces.setdefault(each.trace_id, secrets.token_bytes(16))
        for request in _children_first(fresh) if one_by_one else [fresh]:
            kind = {"Content-Type": "application/x-protobuf"}
            self._ask("/v1/traces", request.SerializeToString(), kind)
        return of_documents(
            self._read(f"/api/v1/calls/{call['invocation_id']}")
            for trace_id in traces.values()
            for call in self._read(f"/api/v1/traces/{trace_id.hex()}").get("calls", [])
        )

    def _read(self, path: str) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._ask(path))
        except urllib.error.HTTPError as error:
            if error.code != 404:  # a trace without calls
                raise
            return {}
        return answer

    def _ask(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        authorized = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        request = urllib.request.Request(self._url + path, body, authorized)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())


@contextmanager
def running() -> Iterator[Tooltrail]:
    """Run an installation in a temporary folder until the block ends."""
    with own_site() as site:
        yield Tooltrail(site.facts["url"], site.facts["api_key"])


def _scopes(request: ExportTraceServiceRequest) -> Iterator[Any]:
    for resource in request.resource_spans:
        yield from resource.scope_spans


def _children_first(request: ExportTraceServiceRequest) -> list[ExportTraceServiceRequest]:
    """A request for each span; the deepest come first."""
    parents = {
        (span.trace_id, span.span_id): span.parent_span_id
        for scope in _scopes(request)
        for span in scope.spans
    }
    single = []
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                depth, at = 0, span.parent_span_id
                while at and depth < len(parents):
                    depth, at = depth + 1, parents.get((span.trace_id, at), b"")
                one = ExportTraceServiceRequest()
                of_one = one.resource_spans.add(resource=resource.resource)
                of_one.scope_spans.add(scope=scope.scope, spans=[span])
                single.append((-depth, -span.start_time_unix_nano, one))
    return [one for *_, one in sorted(single, key=lambda each: each[:2])]
