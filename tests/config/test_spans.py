"""What the server's own spans tell of an error."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from config import telemetry
from config.telemetry import trace_job
from tenants.models import Tenant
from tests.support.factories import Cast


def test_span_of_a_failed_statement_has_no_values(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL's text of an error quotes values: a duplicate key, an invalid number."""
    ended = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ended))
    monkeypatch.setattr(telemetry, "_tracer", lambda: provider.get_tracer("test"))
    context: Any = SimpleNamespace(job=SimpleNamespace(task_name="a.task", queue="reports"))

    def make_twin() -> None:
        Tenant.objects.create(slug=acme.tenant.slug, name="secret-word")

    with pytest.raises(IntegrityError, match=acme.tenant.slug):
        trace_job(make_twin, context, None)
    statement, job = ended.get_finished_spans()
    assert (statement.name, job.name) == ("postgresql", "a.task")
    for span in (statement, job):
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes is not None
        assert span.attributes["error.type"] == "IntegrityError"
        assert (span.events, span.status.description) == ((), None)
