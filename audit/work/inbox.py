"""Actions on rejected lines: send one again, or discard it; and the contents of a line's page.

A line can be resolved only once. Sending again uses the normal intake (`audit.intake.ingest`). If
the line is rejected again, the inbox gets a new line and the old one links to it. All functions
run inside the tenant's scope.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.utils.safestring import SafeString
from tooltrail.ledger import Kind

from audit.events.batch_ids import BatchId, batch_day
from audit.events.body import UnreadableBodyError, split_lines
from audit.events.candidates import Candidate
from audit.events.instants import day_of
from audit.events.json_values import parse
from audit.events.limits import RAW_KEPT_BYTES, LimitExceededError
from audit.index.decisions import decision_id
from audit.intake.ingest import record_in_scope
from audit.log.payload import LogPayloadError, StoredEvent, read_events
from audit.models import Batch, RejectedEvent, Resolution
from audit.queries.call_events import read_call_events, read_decision
from audit.queries.calls import CallDetail, call_detail
from audit.queries.cursor import BEGINNING
from audit.queries.inbox import (
    InboxFilter,
    find_call_day,
    first_id_of,
    inbox_line,
    refused_as,
)
from audit.show import raw_view
from audit.show.json_tree import ABSENT, inline
from audit.sql.run import rows
from tenants.actions import Actor, account_of, name_of, record_action
from tenants.models import Tenant, new_id
from tenants.scope import current_tenant_id

CODES = {
    "conflict": "Conflict",
    "invalid_event": "Invalid event",
    "not_json": "Not JSON",
    "auth_not_allowed": "Contains auth",
    "in_future": "Timestamp in the future",
    "ended_before_started": "End before start",
    "out_of_range": "Too old for the index",
}
"""Why lines are rejected, in a few words."""

DISCARD_LIMIT = 10_000
"""The most lines that are discarded at once."""

_LINE_ENDS = re.compile(r"\r\n|\r|\n")


class DealtWithError(Exception):
    """The line was already sent again or discarded."""


class NotSentError(Exception):
    """The line was not sent again and nothing has changed. The message says why."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A member in which two events of the same slot differ."""

    name: str
    stored: SafeString
    refused: SafeString


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """One line with all that its page shows. `raw` is None for users who may not see payloads."""

    line: RejectedEvent
    kept_bytes: int
    is_cut: bool
    """Only the first 64 KiB were kept."""
    is_expired: bool
    """The line's bytes are gone, through retention or an erasure of its call."""
    is_altered: bool
    """Parts that may never be stored were removed from it."""
    raw: raw_view.RawView | None
    verdict: raw_view.Verdict
    editable: str | None
    """The line as text for a text field; None if it is not UTF-8 or a browser would alter it."""
    call: CallDetail | None
    """The call the line refers to, if it is stored."""
    stored: StoredEvent | None
    """For a conflict: the event that occupies the slot."""
    differences: list[Difference]
    stored_as: CallDetail | None
    """If sent again: the call it is part of now."""
    rejected_again_as: UUID | None
    answer: str
    """If sent again: the server's answer, as JSON."""

    @property
    def would_be_taken(self) -> bool:
        """Whether the line would probably be accepted now if sent unchanged."""
        return self.verdict.candidate is not None and self.stored is None


def gather(line: RejectedEvent, *, with_raw: bool, now: datetime) -> InboxEntry:
    """Collect the contents of a line's page. At most eight statements."""
    raw = bytes(line.raw)
    is_cut = line.raw_length > len(raw) and len(raw) >= RAW_KEPT_BYTES
    verdict = raw_view.judge(raw, line.batch_id, now)
    call = _call_of(verdict.candidate)
    stored = None
    if line.code == "conflict" and verdict.candidate is not None:
        stored = _holder(verdict.candidate, call)
    return InboxEntry(
        line=line,
        kept_bytes=len(raw),
        is_cut=is_cut,
        is_expired=line.raw_length > 0 and not raw,
        is_altered=line.raw_length > len(raw) > 0 and not is_cut,
        raw=raw_view.view(raw, verdict.marks) if with_raw else None,
        verdict=verdict,
        editable=_editable(raw) if with_raw else None,
        call=call,
        stored=stored if with_raw else None,
        differences=_differences(stored, raw) if with_raw else [],
        stored_as=_sent_again(line),
        rejected_again_as=refused_as(line) if line.resolution == Resolution.REFUSED else None,
        answer=_answer(line) if with_raw else "",
    )


def send_again(
    tenant: Tenant, actor: Actor, pk: UUID, edited: str | None, now: datetime
) -> RejectedEvent | None:
    """Send a line unchanged, or `edited`, through ingest. Returns the line, or None if not found.

    A new event is stored before this returns. Raises DealtWithError. Raises NotSentError if the
    line was not kept whole or exceeds a limit, or if the database is busy.
    """
    line = _take(pk)
    if line is None:
        return None
    if edited is None and line.raw_length > len(line.raw) >= RAW_KEPT_BYTES:
        raise NotSentError(
            "Only the beginning of this event was kept. It can't be resent unchanged."
        )
    # A line feed would end the event. Outside of strings, JSON treats all white space alike.
    text = None if edited is None else _LINE_ENDS.sub(" ", edited).strip()
    body = bytes(line.raw) if text is None else text.encode()
    batch_id = new_id()
    try:
        # A savepoint: after a failure the line is unchanged and the page can report the error.
        with transaction.atomic():
            lines = split_lines(body)
            digest = hashlib.sha256(body).digest()
            answer = record_in_scope(tenant.id, digest, lines, BatchId(batch_id), now)
    except (LimitExceededError, UnreadableBodyError) as error:
        raise NotSentError(f"Not resent: {error}.") from error
    except DatabaseError as error:
        raise NotSentError("Nothing changed: the database was busy. Try again.") from error
    line.redrive_batch_id = batch_id
    line.redrive_edited = text is not None
    if answer["accepted"]:
        resolution = Resolution.ACCEPTED
    else:
        resolution = Resolution.DUPLICATE if answer["duplicates"] else Resolution.REFUSED
    _resolve(line, resolution, actor, now)
    record_action(
        tenant,
        actor,
        "inbox.send",
        str(pk),
        code=line.code,
        edited=line.redrive_edited,
        outcome=resolution.value,
    )
    return line


def discard(
    tenant: Tenant, actor: Actor, pk: UUID, reason: str, now: datetime
) -> RejectedEvent | None:
    """Mark a line as discarded, with a reason. It stays stored.

    Returns the line, or None if not found. Raises DealtWithError.
    """
    line = _take(pk)
    if line is None:
        return None
    line.discard_reason = reason
    _resolve(line, Resolution.DISCARDED, actor, now)
    record_action(tenant, actor, "inbox.discard", str(pk), code=line.code, reason=reason)
    return line


def discard_all(
    tenant: Tenant, actor: Actor, wanted: InboxFilter, until: UUID, reason: str, now: datetime
) -> int:
    """Discard the waiting lines of the filter's code up to the line `until`. Returns how many.

    At most `DISCARD_LIMIT` at a time, oldest first. Lines that arrived after `until` stay.
    """
    parameters = {
        "code": wanted.code,
        "last_id": until,
        "first_id": first_id_of(wanted.since),
        "since": wanted.since or BEGINNING,
        "user_id": account_of(actor),
        "user_name": name_of(actor),
        "reason": reason,
        "now": now,
        "discard_limit": DISCARD_LIMIT,
    }
    count = len(rows("inbox_discard_waiting", parameters))
    if count:
        subject = "1 line" if count == 1 else f"{count} lines"
        record_action(
            tenant, actor, "inbox.discard", subject, code=wanted.code, reason=reason, count=count
        )
    return count


def _take(pk: UUID) -> RejectedEvent | None:
    line = inbox_line(pk, for_update=True)
    if line is not None and line.resolution is not None:
        raise DealtWithError
    return line


def _resolve(line: RejectedEvent, resolution: Resolution, actor: Actor, now: datetime) -> None:
    RejectedEvent.objects.for_tenant(line.tenant_id).filter(id=line.id).update(
        resolution=resolution,
        resolved_at=now,
        resolved_by_id=account_of(actor),
        resolved_by_name=name_of(actor),
        discard_reason=line.discard_reason,
        redrive_batch_id=line.redrive_batch_id,
        redrive_edited=line.redrive_edited,
    )
    line.resolution = resolution


def _call_of(candidate: Candidate | None) -> CallDetail | None:
    """The call an event refers to, if the index has its row."""
    if candidate is None or candidate.kind is Kind.GAP:
        return None
    day = find_call_day(day_of(candidate.day), candidate.invocation_id)
    return None if day is None else call_detail(day, candidate.invocation_id)


def _holder(candidate: Candidate, call: CallDetail | None) -> StoredEvent | None:
    """The stored event that a conflicting one contradicts; `call` is the call of both."""
    try:
        if candidate.kind is Kind.DECISION:
            return read_decision(day_of(candidate.day), decision_id(candidate))
        if call is None:
            return None
        return read_call_events(call).get("start" if candidate.kind is Kind.START else "end")
    except LogPayloadError:
        return None


def _sent_again(line: RejectedEvent) -> CallDetail | None:
    """The call that a line is part of now, if it was sent again and not rejected."""
    if line.redrive_batch_id is None or line.resolution == Resolution.REFUSED:
        return None
    place = (line.redrive_batch_id, 0)
    try:
        event = read_events(current_tenant_id(), [place]).get(place)
    except LogPayloadError:
        return None
    if event is None or event.raw is None:
        return None
    verdict = raw_view.judge(event.raw, line.redrive_batch_id, event.received_at)
    return _call_of(verdict.candidate)


def _answer(line: RejectedEvent) -> str:
    if line.redrive_batch_id is None:
        return ""
    batches = Batch.objects.for_tenant(line.tenant_id).filter(
        batch_on=batch_day(line.redrive_batch_id), batch_id=line.redrive_batch_id
    )
    answer = batches.values_list("answer", flat=True).first()
    try:
        return "" if answer is None else json.dumps(json.loads(answer), indent=2)
    except ValueError:
        return ""


def _editable(raw: bytes) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    # A browser drops NUL and rewrites line ends.
    text = text.rstrip("\r")
    return None if "\x00" in text or "\r" in text else text


def _differences(stored: StoredEvent | None, raw: bytes) -> list[Difference]:
    """The members in which a conflicting line differs from the event that occupies its slot."""
    if stored is None or stored.raw is None:
        return []
    stored_members, rejected_members = _members(stored.raw), _members(raw)
    names = [*stored_members, *(name for name in rejected_members if name not in stored_members)]
    return [
        Difference(name, _shown(stored_members, name), _shown(rejected_members, name))
        for name in names
        if stored_members.get(name, ABSENT) != rejected_members.get(name, ABSENT)
    ]


def _members(raw: bytes) -> dict[str, Any]:
    try:
        document = parse(raw)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _shown(members: dict[str, Any], name: str) -> SafeString:
    return inline(members[name], width=200) if name in members else SafeString("—")
