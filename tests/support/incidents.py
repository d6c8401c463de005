"""Incidents as auditors make them: begun on the page, made by the worker, and bundled."""

from pathlib import Path
from typing import Any
from uuid import UUID

from django.urls import reverse

from audit.incidents import making
from audit.models import Incident
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.pages import signed_in


def begin_incident(cast: Cast, q: str, **data: Any) -> UUID:
    """Begin an incident of the calls of a query, as the auditor does."""
    data = {"title": "Theft", "reason": "Case 7", "q": q} | data
    answer = signed_in(cast.auditor).post(reverse("incident_list"), data)
    assert answer.status_code == 302, answer.content.decode()
    return UUID(answer.headers["Location"].rsplit("/", 1)[1])


def make_incident(cast: Cast, q: str, **data: Any) -> UUID:
    """The same, and make its timeline as the worker does."""
    pk = begin_incident(cast, q, **data)
    while making.run_slice(cast.tenant.id, pk):
        pass
    return pk


def read_incident(cast: Cast, pk: UUID) -> Incident:
    """An incident as it is stored."""
    with tenant_scope(cast.tenant.id):
        incident = making.find_incident(pk)
        assert incident is not None
        return incident


def incident_bundle(cast: Cast, pk: UUID, folder: Path) -> Path:
    """The evidence bundle of an incident, as the auditor's browser gets it."""
    answer = signed_in(cast.auditor).get(reverse("incident_evidence", args=[pk]))
    assert answer.status_code == 200, answer.headers
    path = folder / f"{pk}.zip"
    path.write_bytes(b"".join(answer.streaming_content))  # type: ignore[attr-defined]  # a stream
    return path
