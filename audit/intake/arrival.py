"""Outputs judged as they arrive, for tools whose editors want it and executors that do not guard.

What is found is an event of the log, made by the server and stored in the batch of the end it is
about, behind all that was sent: the index follows from the log alone, and whoever reads that
again need not judge again. It is found before the transaction begins and entered only for ends
that took their place; a repeated end is judged in vain and changes nothing.

The rules are the guard's (`tooltrail.guard`), by the schema of the current version. Which tools
are checked is known for `BELIEVED_FOR` seconds; without any, that look is all a request pays.

Bounds: an event above `EVENT_MAX_BYTES` is not judged, nor is any by a schema that jsonschema-rs
cannot judge by itself. The work is bounded for each output and each request, in the guard's steps
(`tooltrail.guard.work`): then a finding says "More was not explained". Of the outputs that are left
is only noted that they are wrong, and no longer than half as much work allows: the others are not
judged. Spans are not judged: a later account of a call may take the place of an earlier one.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
from audit.events.judgement import is_of_spans, judged_output
from tenants.models import new_id
from tenants.scope import tenant_scope
from tools_registry.models import ToolVersion
from tools_registry.schemas import compile_for_arrival

BELIEVED_FOR: Final = 5.0
"""Seconds until every process knows of a switch that was turned, or of another current version."""
EVENT_MAX_BYTES: Final = 256 * 1024
REQUEST_STEPS: Final = 4 * EXPLAINED_STEPS
"""Of the outputs of one request together: 0.2 s."""
VERDICT_STEPS: Final = 2 * EXPLAINED_STEPS
"""Likewise, once those are taken, to say of the others whether anything is wrong: 0.1 s."""

_KNOWN_MAX = 10_000
_TEXT_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Check:
    """A tool's current output schema, ready."""

    version: int
    digest: str
    schema: CompiledSchema


def judge_arrivals(tenant_id: UUID, candidates: Iterable[Candidate]) -> None:
    """Note with each end what is wrong with its output, if its tool is checked on arrival."""
    checks = _checks_of(tenant_id)
    if not checks:
        return
    left = REQUEST_STEPS
    for candidate in candidates:
        event: Any = candidate.event
        if candidate.kind is not Kind.END or event.guard is not None:
            continue
        check, raw = checks.get(event.tool_name), candidate.raw
        if check is None or len(raw) > EVENT_MAX_BYTES:
            continue
        if b'"otlp"' in raw and is_of_spans(raw):
            continue
        if left <= -VERDICT_STEPS:
            break
        is_explained = left > 0
        steps = min(left if is_explained else left + VERDICT_STEPS, EXPLAINED_STEPS)
        judged = judged_output(check.schema, raw, steps, explain=is_explained)
        left -= judged.steps
        if judged.violations:
            candidate.finding = _finding(check, judged.violations)


def finding_event(end: Candidate, at: datetime) -> Candidate:
    """The event that says what was found in an end that has its position; it has none yet."""
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
    return Candidate(end.batch_id, -1, raw, end.event, event_id, Kind.FINDING, end.invocation_id)


def _finding(check: Check, violations: list[Violation]) -> Finding:
    shown = violations[:VIOLATIONS_MAX]
    if violations[-1] is MORE:
        shown[-1] = MORE
    found = [
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
        "violations": found,
    }
    return read_finding(json.dumps(members).encode())


def _checks_of(tenant_id: UUID) -> Mapping[str, Check]:
    known = _KNOWN.get(tenant_id)
    if known is not None and known[0] > time.monotonic():
        return known[1]
    return _look_up(tenant_id)


_KNOWN: dict[UUID, tuple[float, Mapping[str, Check]]] = {}


def _look_up(tenant_id: UUID) -> Mapping[str, Check]:
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
            continue  # its page says so
    if len(_KNOWN) >= _KNOWN_MAX:
        _KNOWN.clear()
    _KNOWN[tenant_id] = time.monotonic() + BELIEVED_FOR, checks
    return checks
