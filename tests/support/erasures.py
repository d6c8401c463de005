"""Erasures as an admin runs them: preview, confirm, run."""

from typing import Any
from uuid import UUID

from django.urls import reverse

from audit.models import Erasure, Invocation, RejectedEvent, Violation
from audit.retention import erasure as job
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.legal_holds import event_texts
from tests.support.pages import signed_in


def preview_erasure(cast: Cast, query: str = "case:mine") -> Erasure:
    """An erasure whose preview is complete."""
    answer = signed_in(cast.admin).post(reverse("erasure_start"), {"q": query})
    assert answer.status_code == 302, answer.content.decode()
    pk = UUID(answer.headers["Location"].rsplit("/", 1)[1])
    run_erasure(cast, pk)
    return read_erasure(cast, pk)


def read_erasure(cast: Cast, pk: UUID) -> Erasure:
    """The erasure as it is stored now."""
    with tenant_scope(cast.tenant.id):
        erasure = job.find_erasure(pk)
    assert erasure is not None
    return erasure


def run_erasure(cast: Cast, pk: UUID) -> None:
    """Run all slices that are due: of the preview, or after confirmation of the erasure."""
    while job.run_slice(cast.tenant.id, pk):
        pass


def confirm_erasure(cast: Cast, pk: UUID) -> None:
    """Confirm the previewed erasure on its page."""
    address = reverse("erasure_confirm", args=[pk])
    assert signed_in(cast.admin).post(address, {"reason": "asked to"}).status_code == 302


def erase(cast: Cast, query: str = "case:mine") -> Erasure:
    """Preview, confirm and run an erasure."""
    one = preview_erasure(cast, query)
    confirm_erasure(cast, one.id)
    run_erasure(cast, one.id)
    return read_erasure(cast, one.id)


def all_stored_text(cast: Cast) -> str:
    """Everything the database stores of the tenant's calls, decompressed, as one text."""
    with tenant_scope(cast.tenant.id):
        rows: list[Any] = [
            list(table.objects.for_tenant(cast.tenant.id).values())
            for table in (Invocation, Violation, RejectedEvent)
        ]
    return f"{rows} {event_texts(cast)}"
