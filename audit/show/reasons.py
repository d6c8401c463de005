"""The reason on a row, in a few words: why a call failed, violates its schema or is still open.

Pure. Also has the notes on calls that succeeded.
"""

from datetime import datetime, timedelta
from typing import Final

from audit.queries.call_filter import OPEN
from audit.queries.calls import Call, FirstViolation
from audit.queries.decisions import Decision
from audit.queries.listed_call import ListedCall
from audit.queries.traces import Reason
from audit.show.figures import (
    NBSP,
    count,
    duration,
    short_count,
)

MESSAGE_LENGTH = 80  # characters of an error message that a row shows

# For a call that failed because of its output, the path and the code of the violation say all that
# these error types and their messages say.
_OF_THE_GUARD = {"VALIDATION", "GUARD"}

GUARD_OUTCOMES: Final = {
    "failed": "rejected",
    "error-result": "returned as error",
    "coerced": "coerced",
    "stripped": "stripped",
    "fallback": "fallback used",
    "passed": "passed",
}
"""What a guard did about a violation, in words; by the outcome in events."""
_CHANGED_BY_GUARD: Final = {"coerced", "stripped", "fallback", "error-result"}


def failure(
    error_type: str,
    error_code: str | None,
    upstream_status: int | None,
    message: str | None,
    *,
    retry_after_ms: int | None = None,
) -> str:
    """`UPSTREAM 503 · retry after 500 ms · service unavailable`."""
    head = " ".join(filter(None, (error_type or "FAILED", _status(error_code, upstream_status))))
    parts = [head]
    if retry_after_ms is not None:
        parts.append(f"retry after {duration(retry_after_ms * 1000)}")
    if message:
        first_line = message.strip().split("\n", 1)[0].strip()
        short = first_line[:MESSAGE_LENGTH].rstrip()
        parts.append(short if short == first_line else f"{short}…")
    return " · ".join(filter(None, parts))


def _status(code: str | None, upstream_status: int | None) -> str:
    return str(upstream_status) if upstream_status is not None else (code or "")


def of_trace(reason: Reason, now: datetime) -> str:
    """Why a trace is listed as failed, violating or open, without the tool's name."""
    if reason.state in OPEN:
        return _open_for(reason.state, reason.started_at, now)
    violation = (
        f"{reason.violation_path} {reason.violation_code}"
        if reason.violation_path is not None
        else ""
    )
    if reason.state != "failed" or (violation and reason.error_type in _OF_THE_GUARD):
        return violation
    message = None if violation else reason.error_message
    head = failure(reason.error_type, reason.error_code, reason.upstream_status, message)
    return " · ".join(filter(None, (head, violation)))


def _open_for(state: str, started_at: datetime, now: datetime) -> str:
    words = "waiting for input" if state == "waiting" else state
    return f"{words} {duration((now - started_at) // timedelta(microseconds=1))}"


def of_decision(decision: Decision) -> str:
    """`denied by no-refunds · over the limit`; of rejected arguments the first violation, too."""
    by = f" by {decision.decider}" if decision.decider else ""
    parts = [f"{decision.words}{by}"]
    if decision.reason:
        first_line = decision.reason.strip().split("\n", 1)[0].strip()
        short = first_line[:MESSAGE_LENGTH].rstrip()
        parts.append(short if short == first_line else f"{short}…")
    if decision.paths:
        count_more = decision.violation_count - 1
        more = f" +{count_more}" if count_more > 0 else ""
        parts.append(f"{decision.paths[0]} {decision.codes[0]}{more}")
    return " · ".join(filter(None, parts))


def of_call(
    call: Call,
    violation: FirstViolation | None,
    now: datetime,
    decision: Decision | None = None,
) -> str:
    """The text beside a call's bar; '' if there is nothing to say.

    `decision` is the latest one about a call that did not run.
    """
    if decision is not None:
        return of_decision(decision)
    parts: list[str] = []
    if call.state in OPEN:
        parts.append(_open_for(call.state, call.started_at, now))
        if is_overdue(call, now):
            parts.append("overdue")
    parts += problems(call, violation)
    if outcome := changed_by_guard(call):
        parts.append(outcome)
    if over := over_limit(call):
        parts.append(over)
    if call.attempt is not None and call.attempt > 1:
        parts.append(f"attempt {call.attempt}")
    if call.cache_hit:
        parts.append("cache hit")
    if tokens := call.prompt_tokens + call.completion_tokens:
        parts.append(f"{short_count(tokens)}{NBSP}tok")
    return " · ".join(parts)


def problems(call: Call | ListedCall, violation: FirstViolation | None) -> list[str]:
    """The failure and the first violation of a call, each if there is one."""
    parts: list[str] = []
    if call.state == "failed" and not (violation and call.error_type in _OF_THE_GUARD):
        parts.append(
            failure(
                call.error_type,
                call.error_code,
                call.upstream_status,
                None if violation else call.error_message,
                retry_after_ms=call.retry_after_ms,
            )
        )
    if violation is not None:
        more = f" +{call.violation_count - 1}" if call.violation_count > 1 else ""
        parts.append(f"{violation.path} {violation.code}{more}")
    return parts


def changed_by_guard(call: Call | ListedCall) -> str:
    """`fallback used` for a call whose output the guard changed; '' for others."""
    outcome = call.guard_outcome or ""
    return GUARD_OUTCOMES[outcome] if outcome in _CHANGED_BY_GUARD else ""


def over_limit(call: Call | ListedCall) -> str:
    """`exceeded 200 ms timeout` for a call that took longer than its timeout; '' for others.

    Also '' for failed and cancelled calls: the reason says more, and there is little room.
    """
    if call.state in ("failed", "cancelled"):
        return ""
    if call.duration_us is None or call.timeouts_ms is None:
        return ""
    limit_us = call.timeouts_ms * 1000
    return f"exceeded {duration(limit_us)} timeout" if call.duration_us > limit_us else ""


def is_overdue(call: Call, now: datetime) -> bool:
    """Whether an open call has run longer than its timeout."""
    if call.state != "open" or call.timeouts_ms is None:
        return False
    return (now - call.started_at) / timedelta(milliseconds=1) > call.timeouts_ms


def tokens(prompt: int, completion: int) -> str:
    """`3,584 ▸ 1,120`: in and out; a dash when none were counted."""
    return f"{count(prompt)} ▸ {count(completion)}" if prompt or completion else "—"
