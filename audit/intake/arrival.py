"""Validate outputs on arrival, for tools that ask for it and executors that do not guard.

A finding is an event that the server writes to the log. It is stored in the batch of its end
event, after all events that were sent. So the index follows from the log alone, and reading the
log again needs no second validation. Outputs are validated before the transaction begins. A
finding is stored only for an end event that is new: validating a repeated end changes nothing.

The rules are the guard's (`tooltrail.guard`), with the schema of the current version. The list of
checked tools is cached for `BELIEVED_FOR` seconds. A tenant without checked tools pays only for
that lookup.

Limits: events above `EVENT_MAX_BYTES` are not validated, nor is any output whose schema
jsonschema-rs cannot validate alone. The work for each output and each request is bounded, in the
guard's steps (`tooltrail.guard.work`). At the bound, a finding says "More was not explained". For
the remaining outputs the server records only that they are invalid; that may take half as much
work again. After that, outputs are not validated.

Outputs of spans are validated in the same way. A later account of a call that replaces an earlier
one has its own finding, or none (`audit.index.indexing`). Spans of a call that an executor reported
itself are only logged, so they are not validated. The batches of one request share its `Budget`.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F
from tooltrail.events import VIOLATIONS_MAX
from tooltrail.guard import Violation
from tooltrail.guard.jsonschema import CompiledSchema
from tooltrail.guard.violations import MORE
from tooltrail.guard.work import EXPLAINED_STEPS
from tooltrail.ledger import Kind

from audit.events.candidates import Candidate
from audit.events.findings import Finding, read_finding
from audit.events.judgement import judged_output
from tenants.models import new_id
from tenants.scope import tenant_scope
from tools_registry.models import ToolVersion
from tools_registry.schemas import compile_for_arrival

BELIEVED_FOR: Final = 5.0
"""Seconds until every process sees a changed switch or a new current version."""
EVENT_MAX_BYTES: Final = 256 * 1024
REQUEST_STEPS: Final = 4 * EXPLAINED_STEPS
"""For all outputs of one request together: 0.2 s on a slow machine."""
VERDICT_STEPS: Final = 2 * EXPLAINED_STEPS
"""After `REQUEST_STEPS`, for deciding only whether the other outputs are valid: 0.1 s."""

_KNOWN_MAX = 10_000
_TEXT_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Check:
    """A tool's current output schema, compiled."""

    version: int
    digest: str
    schema: CompiledSchema


@dataclass(slots=True)
class Budget:
    """How much work is left for the outputs of one request, in steps."""

    left: int = field(default_factory=lambda: REQUEST_STEPS)

    @property
    def is_spent(self) -> bool:
        """Whether no further output can be validated."""
        return self.left <= -VERDICT_STEPS

    def judge(self, schema: CompiledSchema, raw: bytes) -> list[Violation]:
        """The violations of an end event's output. Not to be called when the budget is spent."""
        is_explained = self.left > 0
        limit = self.left if is_explained else self.left + VERDICT_STEPS
        judged = judged_output(schema, raw, min(limit, EXPLAINED_STEPS), explain=is_explained)
        self.left -= judged.steps
        return judged.violations


def judge_arrivals(tenant_id: UUID, candidates: Iterable[Candidate], budget: Budget) -> None:
    """Add a finding to each end event with an invalid output, if its tool is checked on arrival."""
    checks = _checks_of(tenant_id)
    if not checks:
        return
    for candidate in candidates:
        event: Any = candidate.event
        if candidate.kind is not Kind.END or event.guard is not None:
            continue
        if event.call_state is not None:  # the tool has returned nothing
            continue
        check, raw = checks.get(event.tool_name), candidate.raw
        if check is None or len(raw) > EVENT_MAX_BYTES:
            continue
        if candidate.is_beside:
            continue
        if budget.is_spent:
            break
        if violations := budget.judge(check.schema, raw):
            candidate.finding = _finding(check, violations)


def finding_event(end: Candidate, at: datetime) -> Candidate:
    """The finding event of an end event that has its position. The finding has no position yet."""
    assert end.finding is not None
    event_id = new_id()
    head = json.dumps(
        {
            "type": Kind.FINDING.name.lower(),
            "event_id": str(event_id),
            "at": at.isoformat(),
            "invocation_id": str(end.invocation_id),
            "end_position": end.position,
        }
    )
    raw = b"%b,%b" % (head[:-1].encode(), end.finding.members[1:])
    return Candidate(
        batch_id=end.batch_id,
        line=-1,
        raw=raw,
        event=end.event,
        event_id=event_id,
        kind=Kind.FINDING,
        invocation_id=end.invocation_id,
    )


def _finding(check: Check, violations: list[Violation]) -> Finding:
    shown = violations[:VIOLATIONS_MAX]
    if violations[-1] is MORE:
        shown[-1] = MORE
    listed = [
        {
            "path": each.path[:_TEXT_MAX],
            "code": each.code,
            "severity": each.severity,
            "expected": each.expected[:_TEXT_MAX],
            "received": each.received[:_TEXT_MAX],
            "message": each.message[:_TEXT_MAX],
        }
        for each in shown
    ]
    members = {
        "tool_version": check.version,
        "digest": check.digest,
        "found_count": len(violations),
        "violations": listed,
    }
    return read_finding(json.dumps(members).encode())


def _checks_of(tenant_id: UUID) -> Mapping[str, Check]:
    known = _KNOWN.get(tenant_id)
    if known is not None and known[0] > time.monotonic():
        return known[1]
    return _load_checks(tenant_id)


_KNOWN: dict[UUID, tuple[float, Mapping[str, Check]]] = {}


def _load_checks(tenant_id: UUID) -> Mapping[str, Check]:
    with tenant_scope(tenant_id):
        versions = list(
            ToolVersion.objects.filter(
                tenant_id=tenant_id,
                tool__tenant_id=tenant_id,
                tool__is_checked_on_arrival=True,
                number=F("tool__current_number"),
            )
            .select_related("tool")
            .only("tenant_id", "tool__name", "number", "digest", "output_schema")
        )
    checks: dict[str, Check] = {}
    for one in versions:
        try:
            schema = compile_for_arrival(one.output_schema)
            checks[one.tool.name] = Check(one.number, one.digest, schema)
        except ValueError:
            continue  # the tool's page reports this
    if len(_KNOWN) >= _KNOWN_MAX:
        _KNOWN.clear()
    _KNOWN[tenant_id] = time.monotonic() + BELIEVED_FOR, checks
    return checks
