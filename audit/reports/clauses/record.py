"""Gathers what a clause report has beside the figures of other reports: `figures.record`.

Like those, figures of the range, or where their names say so of the moment.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from audit.ledger.status import ledger_status
from audit.ledger.witnesses.states import witness_states
from audit.queries.approvals import READ_LIMIT, ApprovalFilter, approvals, figures
from audit.queries.inbox import first_id_of
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from config.instants import iso
from tenants.actions import THE_SERVER
from tenants.models import TenantSetting
from tenants.scope import current_tenant_id

ACCESS: Final = (
    *("call.view", "call.raw", "call.reveal", "call.export"),
    *("inbox.view", "inbox.reveal", "payload.search", "payload.query", "payload.read"),
    *("text.view", "evidence.export"),
)
"""Verbs of actions that show payloads, or texts that quote them."""


ORPHANS_MAX: Final = 100_000
"""Ends without a start that are counted."""


def record_figures(of: TimeRange, now: datetime) -> dict[str, Any]:
    """What the record says of itself. About 15 statements.

    Instants are RFC 3339 in UTC, durations in milliseconds. Unknown values are null.
    """
    ((orphans,),) = rows("clause_orphans", {**_span(of), "limit": ORPHANS_MAX})
    return {
        "orphans": orphans,
        "ledger": _ledger(of),
        "witnesses": _witnesses(of),
        "retention": _retention(),
        "access": _access(of),
        "alerts": _alerts(of),
        "oversight": _oversight(of),
        "counts": _counts(of),
        "at": iso(now),
    }


def _ledger(of: TimeRange) -> dict[str, Any]:
    status = ledger_status(current_tenant_id())
    ((checkpoints, last_at),) = rows("clause_checkpoints", _span(of))
    checked = next(iter(rows("clause_check", {})), None)
    return {
        "size": status.size,
        "signed_size": status.signed_size,
        "signed_at": status.signed_at and iso(status.signed_at),
        "refusal": status.refusal,
        "checkpoints": checkpoints,
        "last_checkpoint_at": last_at and iso(last_at),
        "checked_at": checked and iso(checked[0]),
        "checked_size": checked and checked[1],
        "findings": checked and checked[2],
    }


def _witnesses(of: TimeRange) -> dict[str, Any]:
    states = witness_states(current_tenant_id())
    answers: dict[str, int] = dict(rows("clause_witnesses", _span(of)))
    return {
        "named": len(states.each),
        "needed": states.policy.needed,
        "vouched_size": states.size,
        "missing": len(states.missing),
        "has_time_authority": states.authority is not None,
        "signed": answers.get("signed", 0),
        "refused": answers.get("refused", 0),
        "silent": answers.get("silent", 0),
    }


def _retention() -> dict[str, Any]:
    setting = TenantSetting.objects.filter(tenant_id=current_tenant_id()).first()
    erased_to = 0 if setting is None else setting.erased_to
    payload = next(iter(rows("clause_oldest_payload", {"erased_to": erased_to})), None)
    ((day,),) = rows("clause_oldest_call", {})
    return {
        "payload_days": setting and setting.payload_days,
        "index_days": setting and setting.index_days,
        "floor_days": setting and setting.floor_days,
        "oldest_payload_at": payload and iso(payload[0]),
        "oldest_call_on": day and day.isoformat(),
    }


def _access(of: TimeRange) -> dict[str, Any]:
    acts = rows("clause_acts", {**_span(of), "verbs": list(ACCESS)})
    by_verb = {verb: number for verb, number, _ in acts if verb is not None}
    return {
        "acts": sum(by_verb.values()),
        "by_verb": dict(sorted(by_verb.items())),
        "people": next((people for verb, _, people in acts if verb is None), 0),
    }


def _alerts(of: TimeRange) -> dict[str, Any]:
    ((seconds,),) = rows("clause_answers", {**_span(of), "server": THE_SERVER})
    messages: dict[str, int] = dict(rows("clause_messages", _span(of)))
    return {
        "answered_p50_ms": None if seconds is None else float(seconds) * 1000,
        "delivered": messages.get("delivered", 0),
        "not_delivered": messages.get("failed", 0),
    }


def _oversight(of: TimeRange) -> dict[str, Any]:
    read = approvals(of, ApprovalFilter(), limit=READ_LIMIT)
    made = figures(read)
    total = asdict(made.total)
    median = made.total.p50_us
    return {
        "is_complete": len(read) < READ_LIMIT,
        "requests": sum(one.is_request for one in read),
        **{name: total[name] for name in ("approved", "refused", "self_approved", "unasked")},
        "awaiting": made.awaiting,
        "people": sum(one.kind == "person" for one in made.deciders),
        "waited_p50_ms": None if median is None else median / 1000,
    }


def _counts(of: TimeRange) -> dict[str, Any]:
    ((*numbers,),) = rows("clause_counts", _span(of))
    names = (
        *("rules", "streams", "holds", "holds_set", "erased_calls", "incidents"),
        *("samples", "sampled_calls", "unapproved", "definition_changes"),
    )
    return dict(zip(names, numbers, strict=True))


def _span(of: TimeRange) -> dict[str, Any]:
    return {
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": (of.end - timedelta(microseconds=1)).astimezone(UTC).date(),
        "first_id": first_id_of(of.start),
    }
