"""Checks of the whole ledger over the API."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Path

from audit.ledger import checks
from audit.models import LedgerCheck
from audit.pages.ledger.acts import begin_check, stop_check
from audit.pages.show.router import router
from config.http.problems import ProblemError
from tenants.api_acts import Act, acts
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope


class Check(Answer):
    """A check of the whole ledger: leaves, tiles, checkpoints, and the rows that entries prove."""

    id: UUID
    state: Literal["waiting", "running", "passed", "failed", "cancelled"]
    """`failed`: it has findings, or could not be finished."""
    created_at: datetime
    created_by: str
    entries: int
    """Entries to check."""
    checked: int
    """Entries checked so far."""
    erased: int
    """Events whose payload is erased, as later entries say."""
    checkpoints: int
    finding_count: int
    findings: list[str]
    """The first ones."""
    finished_at: datetime | None


@acts(
    router,
    "POST",
    "/ledger/checks",
    Check,
    scope=Scope.OPERATE,
    tag="ledger",
    status=201,
    problems=("conflict",),
)
def start_ledger_check(act: Act) -> dict[str, Any]:
    """Check the whole ledger in the background. One check runs at a time."""
    check = begin_check(act.tenant, act.actor)
    if check is None:
        raise ProblemError("conflict", "A check is already under way.")
    return _document(check)


@reads(router, "/ledger/checks/{uuid:check_id}", Check, tag="ledger", problems=("not_found",))
def read_ledger_check(request: HttpRequest, check_id: Path[UUID]) -> dict[str, Any]:
    """Get the progress of a check and its findings."""
    return _document(_check_of(check_id))


@acts(
    router,
    "POST",
    "/ledger/checks/{uuid:check_id}/cancel",
    Check,
    scope=Scope.OPERATE,
    tag="ledger",
    problems=("not_found",),
)
def cancel_ledger_check(act: Act, check_id: Path[UUID]) -> dict[str, Any]:
    """Cancel a check. One that has ended stays as it is."""
    stop_check(act.tenant, act.actor, _check_of(check_id))
    return _document(_check_of(check_id))


def _check_of(pk: UUID) -> LedgerCheck:
    check = checks.find_check(pk)
    if check is None:
        raise ProblemError("not_found", "Check not found.")
    return check


def _document(one: LedgerCheck) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "created_at": utc(one.created_at),
        "created_by": one.created_by,
        "entries": one.size,
        "checked": one.next_index,
        "erased": one.erased_count,
        "checkpoints": one.checkpoint_count,
        "finding_count": one.finding_count,
        "findings": one.findings,
        "finished_at": one.finished_at and utc(one.finished_at),
    }
