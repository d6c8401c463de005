"""What the server's own spans do not tell: values."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from audit.models import Batch
from config import telemetry
from config.telemetry import trace_job, trace_statements
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast

NO_JOB: Any = None


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans that have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "_tracer", lambda: provider.get_tracer("test"))
    return exporter


def test_span_of_a_failed_statement_has_no_values(acme: Cast, ended: InMemorySpanExporter) -> None:
    """PostgreSQL's text of an error quotes values: a duplicate key, an invalid number."""

    def make_twin() -> None:
        Tenant.objects.create(slug=acme.tenant.slug, name="secret-word")

    with pytest.raises(IntegrityError, match=acme.tenant.slug):
        trace_statements(make_twin, NO_JOB, None)
    (span,) = ended.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "IntegrityError"
    assert (span.events, span.status.description) == ((), None)


def test_span_of_a_scope_does_not_name_the_tenant(acme: Cast, ended: InMemorySpanExporter) -> None:
    def read() -> None:
        with tenant_scope(acme.tenant.id):
            Batch.objects.for_tenant(acme.tenant.id).count()

    trace_statements(read, NO_JOB, None)
    texts = [dict(span.attributes or {})["db.query.text"] for span in ended.get_finished_spans()]
    assert "SET LOCAL tooltrail.tenant_id" in texts
    assert any("FROM" in str(text) for text in texts)
    assert str(acme.tenant.id) not in str(texts)


def test_failed_job_is_a_failed_span(ended: InMemorySpanExporter) -> None:
    async def fail() -> None:
        raise ValueError("secret-word")

    context: Any = SimpleNamespace(job=SimpleNamespace(task_name="a.task", queue="reports"))
    with pytest.raises(ValueError, match="secret-word"):
        asyncio.run(trace_job(fail, context, None))
    (span,) = ended.get_finished_spans()
    assert (span.name, span.status.status_code) == ("a.task", StatusCode.ERROR)
    assert dict(span.attributes or {}) == {
        "messaging.destination.name": "reports",
        "error.type": "ValueError",
    }
    assert span.events == ()
