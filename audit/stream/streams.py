"""The streams of a tenant: create, change, pause, replay and delete them. Needs the scope."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from audit.deliveries.outbox import SOON
from audit.ledger.status import ledger_status
from audit.models import Stream, StreamFormat, StreamOf, StreamWay
from audit.stream.addressing import Given, StreamError, leads_to, read
from audit.stream.secrets import boxed, secrets_of
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant, new_id
from tenants.scope import current_tenant_id

STREAMS_MAX = 20
NAME_MAX = 100
REASON_MAX = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants a stream to be."""

    name: str
    of: StreamOf
    format: StreamFormat
    way: StreamWay
    given: Given
    has_proofs: bool = True


def all_streams() -> list[Stream]:
    """The tenant's streams by name."""
    return list(Stream.objects.for_tenant(current_tenant_id()).order_by("name"))


def find_stream(stream_id: UUID) -> Stream | None:
    """A stream of the tenant, or None."""
    return Stream.objects.for_tenant(current_tenant_id()).filter(id=stream_id).first()


def find_named(name: str) -> Stream | None:
    """The stream of this name, or of this id as text, or None."""
    if not name.isprintable():
        return None
    streams = Stream.objects.for_tenant(current_tenant_id())
    stream = streams.filter(name=name).first()
    if stream is None and (stream_id := id_in(name)) is not None:
        return find_stream(stream_id)
    return stream


def id_in(text: str) -> UUID | None:
    """The id that a text is, or None."""
    try:
        return UUID(text)
    except ValueError:
        return None


def create_stream(
    tenant: Tenant, actor: Actor, wanted: Wanted, *, from_index: int | None = None
) -> Stream:
    """Create a stream. It begins at an index of the ledger, or with what arrives from now on.

    Raises StreamError, BoxError.
    """
    _check_name(wanted.name)
    others = Stream.objects.for_tenant(tenant.id)
    if others.filter(name=wanted.name).exists():
        raise StreamError("name", "Another stream has this name.")
    if others.count() >= STREAMS_MAX:
        raise StreamError("name", f"A tenant has at most {STREAMS_MAX} streams.")
    size = ledger_status(tenant.id).size
    begin = size if from_index is None else from_index
    if not 0 <= begin <= size:
        raise StreamError("index", f"Enter an index from 0 to {size:,}, the end of the ledger.")
    address, now, pk = read(wanted.way, wanted.given, {}), timezone.now(), new_id()
    stream = Stream.objects.create(
        tenant_id=tenant.id,
        id=pk,
        name=wanted.name,
        of=wanted.of,
        format=wanted.format,
        way=wanted.way,
        settings=address.settings,
        secret_box=boxed(tenant.id, pk, address),
        has_proofs=wanted.has_proofs,
        created_at=now,
        created_by=name_of(actor),
        changed_at=now,
        changed_by=name_of(actor),
        next_index=begin,
        sent_count=0,
        failure="",
        attempt_count=0,
        next_attempt_at=now,
    )
    _record(tenant, actor, "create", stream, to=leads_to(stream.way, stream.settings), begin=begin)
    send_soon()
    return stream


def change_stream(tenant: Tenant, actor: Actor, stream: Stream, wanted: Wanted) -> bool:
    """Change a stream; what it is of and its way stay. Secrets that are left empty stay.

    Returns False if nothing changed. Payloads leave for no other place than the one for which they
    were allowed: with another address they are off again. Raises StreamError, BoxError.
    """
    _check_name(wanted.name)
    others = Stream.objects.for_tenant(tenant.id).exclude(id=stream.id)
    if others.filter(name=wanted.name).exists():
        raise StreamError("name", "Another stream has this name.")
    if (wanted.of, wanted.way) != (stream.of, stream.way):
        raise StreamError("way", "This cannot be changed: create another stream.")
    kept = secrets_of(stream)
    address = read(wanted.way, wanted.given, kept)
    became = {
        "name": wanted.name,
        "format": wanted.format,
        "has_proofs": wanted.has_proofs,
        "settings": dict(address.settings),
    }
    changed = [field for field, value in became.items() if getattr(stream, field) != value]
    if address.secrets != kept:
        changed.append("secret")
        stream.secret_box = boxed(tenant.id, stream.id, address)
    if not changed:
        return False
    is_elsewhere = leads_to(stream.way, stream.settings) != leads_to(stream.way, address.settings)
    if is_elsewhere and stream.payloads_by is not None:
        stream.payloads_by = stream.payloads_reason = None
        changed.append("payloads")
    for field, value in became.items():
        setattr(stream, field, value)
    stream.changed_at, stream.changed_by = timezone.now(), name_of(actor)
    _save(stream, *became, "secret_box", "payloads_by", "payloads_reason", now=timezone.now())
    _record(
        tenant,
        actor,
        "change",
        stream,
        to=leads_to(stream.way, stream.settings),
        changed=sorted(changed),
    )
    send_soon()
    return True


def pause_stream(tenant: Tenant, actor: Actor, stream: Stream) -> bool:
    """Stop sending; what arrives waits in the ledger. Returns False if it is paused already."""
    if stream.paused_at is not None:
        return False
    stream.paused_at, stream.paused_by = timezone.now(), name_of(actor)
    _save(stream, "paused_at", "paused_by")
    _record(tenant, actor, "pause", stream, next_index=stream.next_index)
    return True


def resume_stream(tenant: Tenant, actor: Actor, stream: Stream) -> bool:
    """Go on from the cursor, at once. Returns False if it is neither paused nor failing."""
    if stream.paused_at is None and not stream.failure:
        return False
    stream.paused_at = stream.paused_by = None
    _save(stream, "paused_at", "paused_by", now=timezone.now())
    _record(tenant, actor, "resume", stream, next_index=stream.next_index)
    send_soon()
    return True


def replay_stream(tenant: Tenant, actor: Actor, stream: Stream, index: int) -> None:
    """Move the cursor back to an index of the ledger: all entries from there are sent again.

    Raises StreamError: it cannot be moved forward, as that would skip entries.
    """
    before = stream.next_index
    if not 0 <= index <= before:
        raise StreamError("index", f"Enter an index from 0 to {before:,}, the cursor.")
    stream.next_index = index
    _save(stream, "next_index", now=timezone.now())
    _record(tenant, actor, "replay", stream, before=before, next_index=stream.next_index)
    send_soon()


def allow_payloads(tenant: Tenant, actor: Actor, stream: Stream, reason: str) -> bool:
    """Let payloads leave with a stream from now on. Returns False if they do already."""
    if stream.payloads_by is not None:
        return False
    stream.payloads_by, stream.payloads_reason = name_of(actor), reason
    _save(stream, "payloads_by", "payloads_reason")
    to = leads_to(stream.way, stream.settings)
    _record(tenant, actor, "payloads", stream, to=to, reason=reason, next_index=stream.next_index)
    return True


def stop_payloads(tenant: Tenant, actor: Actor, stream: Stream) -> bool:
    """Keep payloads here from now on. Returns False if they do not leave."""
    if stream.payloads_by is None:
        return False
    stream.payloads_by = stream.payloads_reason = None
    _save(stream, "payloads_by", "payloads_reason")
    _record(tenant, actor, "no-payloads", stream, next_index=stream.next_index)
    return True


def ask_test(tenant: Tenant, actor: Actor, stream: Stream) -> None:
    """Let the worker send a test record."""
    stream.last_test = {"asked_at": timezone.now().isoformat()}
    rows = Stream.objects.for_tenant(tenant.id).filter(id=stream.id)
    rows.update(last_test=stream.last_test)
    _record(tenant, actor, "test", stream)
    task = app.configure_task("audit.tasks.test_stream", queue="streams", priority=SOON)
    task.defer(tenant_id=str(tenant.id), stream_id=str(stream.id))


def delete_stream(tenant: Tenant, actor: Actor, stream: Stream) -> None:
    """Delete a stream, with its cursor."""
    Stream.objects.for_tenant(tenant.id).filter(id=stream.id).delete()
    _record(tenant, actor, "delete", stream, next_index=stream.next_index)


def send_soon() -> None:
    """Let the worker send what is due, once this transaction is committed."""
    # By name, because tasks are above this module. The sweep of ten seconds finds what is left.
    app.configure_task("audit.tasks.send_streams", queue="streams").defer()


def _save(stream: Stream, *fields: str, now: datetime | None = None) -> None:
    """Store these fields, and end the claim: a worker that sends it notices, and stops.

    With `now` it is due, whatever failed before.
    """
    stream.claim = stream.claimed_until = None
    fields = (*fields, "changed_at", "changed_by", "claim", "claimed_until")
    if now is not None:
        stream.failure, stream.failing_since, stream.attempt_count = "", None, 0
        stream.next_attempt_at = now
        fields = (*fields, "failure", "failing_since", "attempt_count", "next_attempt_at")
    rows = Stream.objects.for_tenant(stream.tenant_id).filter(id=stream.id)
    rows.update(**{field: getattr(stream, field) for field in fields})


def _record(tenant: Tenant, actor: Actor, verb: str, stream: Stream, **details: Any) -> None:
    record_action(
        tenant,
        actor,
        f"stream.{verb}",
        stream.name,
        rows=[stream],
        stream=str(stream.id),
        of=str(stream.of),
        way=str(stream.way),
        **details,
    )


def _check_name(name: str) -> None:
    if not 0 < len(name) <= NAME_MAX or not name.isprintable():
        raise StreamError("name", f"Enter a name of 1 to {NAME_MAX} characters.")
