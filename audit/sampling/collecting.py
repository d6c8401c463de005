"""Begins samples and lists their populations, in the worker.

A sample is a job in slices (`tenants.slices`). Its definition is on record before the size of the
ledger is read, and calls whose first entry came later are not in the population. So nobody who sees
the population can still define another one. At the end the digest of the sorted list becomes an
action, and the number of calls to draw follows.
"""

import secrets
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.utils import timezone
from tooltrail.evidence.sample.acts import COMMITTED, FIXED
from tooltrail.evidence.sample.attributes import NoSizeError, Plan, size_for
from tooltrail.evidence.sample.layout import Definition
from tooltrail.evidence.sample.selection import population_digest
from tooltrail.ledger import HASH_LENGTH

from audit.events.batch_ids import batch_day
from audit.ledger.actions import enter_all_actions
from audit.ledger.status import ledger_status
from audit.models import Batch, Sample, SamplePart, SampleState
from audit.queries.call_list import call_chunk
from audit.queries.call_query import InvalidQueryError, Query, Reader, parse_pinned
from audit.queries.cursor import stored_cursor
from audit.queries.listed_call import ListedCall
from tenants import slices
from tenants.actions import THE_SERVER, Actor, name_of, record_action
from tenants.models import Tenant, new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS

CALLS_MAX: Final = 500_000
"""Of a population: their list has 60 bytes for each."""
UNDER_WAY: Final = (SampleState.WAITING, SampleState.RUNNING)
ENDED: Final = (SampleState.SIGNED, SampleState.CANCELLED, SampleState.FAILED)
CANCELLED: Final = "sample.cancel"
CLOCKS_DIFFER: Final = timedelta(minutes=10)
"""How much an action's time may differ from that in the row that it is about."""
_AT_ONCE: Final = 2_000
_RECORD: Final = struct.Struct(">Q32si16s")
"""Ledger index and leaf of the first entry of a call; the day of its start (ordinal); its id."""
_PROVED: Final = 40
"""The first bytes of a record: what the digest of a population is made of."""
_PLACED: Final = 44
"""The bytes of a record before the call's id."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an auditor asks for. One of `size` and `plan` is given."""

    name: str
    query: Query
    """Without terms on payloads: the population is that of the index."""
    size: int | None
    plan: Plan | None
    commitment: str = ""
    """To a nonce (`commitment_of`); '': there is none."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A call of a population."""

    index: int
    leaf: bytes
    started_on: date
    invocation_id: UUID


def start_sample(tenant: Tenant, actor: Actor, wanted: Wanted, now: datetime) -> Sample:
    """Put a sample on record for the worker. The caller defers the task. Needs the scope."""
    plan = wanted.plan
    sample = Sample.objects.create(
        tenant_id=tenant.pk,
        id=new_id(),
        name=wanted.name,
        query=wanted.query.pinned(now),
        wanted_size=wanted.size,
        confidence=None if plan is None else plan.confidence,
        tolerable=None if plan is None else plan.tolerable,
        expected=None if plan is None else plan.expected,
        salt=secrets.token_hex(16),
        commitment=wanted.commitment,
        created_at=now,
        created_by=name_of(actor),
        state=SampleState.WAITING,
    )
    # Without query and name, which may be about a person: the ledger cannot forget.
    record_action(
        tenant,
        actor,
        COMMITTED,
        str(sample.id),
        rows=[sample],
        definition=definition_of(sample).digest,
        commitment=sample.commitment,
    )
    return sample


def definition_of(sample: Sample) -> Definition:
    """What the sample is of, and how large, as its first action has it."""
    return Definition(
        name=sample.name,
        query=sample.query,
        size=sample.wanted_size,
        confidence=sample.confidence,
        tolerable=sample.tolerable,
        expected=sample.expected,
        salt=sample.salt,
    )


def all_samples() -> list[Sample]:
    """The tenant's samples, the newest first. One query."""
    return list(Sample.objects.for_tenant(current_tenant_id()).order_by("-id"))


def find_sample(pk: UUID, *, for_update: bool = False) -> Sample | None:
    """The tenant's sample with this id, or None."""
    samples = Sample.objects.for_tenant(current_tenant_id()).filter(id=pk)
    return (samples.select_for_update() if for_update else samples).first()


def cancel_sample(tenant: Tenant, actor: Actor, pk: UUID, now: datetime) -> bool:
    """Stop a sample that two people have not signed. It stays on record. False: it has ended."""
    samples = Sample.objects.for_tenant(tenant.pk).filter(id=pk).exclude(state__in=ENDED)
    if not samples.update(state=SampleState.CANCELLED, finished_at=now):
        return False
    record_action(tenant, actor, CANCELLED, str(pk))
    return True


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue to list a population for about `seconds`. True if there is more to do."""
    enter_all_actions(tenant_id)  # the definition is an entry before the ledger's size is read
    return slices.run_slice(partial(_run_chunk, tenant_id, pk), seconds)


def population_of(sample: Sample) -> list[bytes]:
    """The records of a population, in the order of the ledger, each call once. One query.

    They stay bytes, which are in the order of their indexes: objects of half a million calls would
    take four times the memory, and most of the time of a draw.
    """
    by_id = {record[_PLACED:]: record for record in sorted(_records(sample), reverse=True)}
    return sorted(by_id.values())


def proved_bytes(population: Sequence[bytes]) -> bytes:
    """A population as anybody can repeat its digest: `population.bin` of a bundle."""
    return b"".join([record[:_PROVED] for record in population])


def index_of(record: bytes) -> int:
    """The ledger index of a call's first entry."""
    return int.from_bytes(record[:8])


def listed(record: bytes) -> Listed:
    """The call of a record."""
    index, leaf, day, pk = _RECORD.unpack(record)
    return Listed(index, leaf, date.fromordinal(day), UUID(bytes=pk))


def _run_chunk(tenant_id: UUID, pk: UUID, _: float) -> bool:
    with tenant_scope(tenant_id):
        sample = find_sample(pk, for_update=True)
        if sample is None or sample.state not in UNDER_WAY:
            return False
        sample.state = SampleState.RUNNING
        if sample.ledger_size is None:
            sample.ledger_size = ledger_status(tenant_id).size
        try:
            is_last = _list_more(sample)
        except InvalidQueryError as error:  # stored by an earlier version
            _fail(sample, f"The query cannot be read any more. {error}")
        else:
            if sample.found_count > CALLS_MAX:
                _fail(sample, f"More than {CALLS_MAX:,} calls match. Narrow the query.")
            elif is_last:
                _fix(sample)
        sample.save()
        if sample.state == SampleState.FIXED:
            record_action(
                Tenant(id=tenant_id),
                THE_SERVER,
                FIXED,
                str(sample.id),
                rows=[sample],
                population=sample.population,
                calls=sample.call_count,
                ledger_size=sample.ledger_size,
                size=sample.size,
            )
        return sample.state == SampleState.RUNNING


def _list_more(sample: Sample) -> bool:
    """List the next calls. True if these were the last ones. Raises InvalidQueryError."""
    calls, cursor = call_chunk(
        parse_pinned(sample.query, Reader()).wanted,
        now=sample.created_at,
        before=stored_cursor(sample.cursor_at, sample.cursor_id),
        size=_AT_ONCE,
    )
    entered = _listed(sample, calls)
    if entered:
        parts = SamplePart.objects.for_tenant(sample.tenant_id).filter(sample_id=sample.id)
        SamplePart.objects.create(
            tenant_id=sample.tenant_id,
            sample_id=sample.id,
            number=parts.count(),
            records=b"".join([_record(call) for call in entered]),
        )
    sample.found_count += len(entered)
    if cursor is not None:
        sample.cursor_at, sample.cursor_id = cursor.at, cursor.id
    return cursor is None


def _listed(sample: Sample, calls: Sequence[ListedCall]) -> list[Listed]:
    """The calls that have an entry in the ledger of the sample's size. One query."""
    assert sample.ledger_size is not None
    places = [[each for each in (call.start_place, call.end_place) if each] for call in calls]
    batches = _batches(sample.tenant_id, {batch_id for own in places for batch_id, _ in own})
    entered = []
    for call, own in zip(calls, places, strict=True):
        entries = [
            (batches[batch_id][0] + position, batch_id, position)
            for batch_id, position in own
            if batch_id in batches
        ]
        if entries and (first := min(entries))[0] < sample.ledger_size:
            index, batch_id, position = first
            leaf = batches[batch_id][1][position * HASH_LENGTH : (position + 1) * HASH_LENGTH]
            entered.append(Listed(index, leaf, call.started_on, call.invocation_id))
    return entered


def _batches(tenant_id: UUID, ids: Collection[UUID]) -> dict[UUID, tuple[int, bytes]]:
    """The first ledger index and the leaves of these batches."""
    stored = Batch.objects.for_tenant(tenant_id).filter(
        batch_on__in={batch_day(each) for each in ids}, batch_id__in=ids
    )
    return {
        batch_id: (first_index, bytes(leaves))
        for batch_id, first_index, leaves in stored.values_list("batch_id", "first_index", "leaves")
    }


def _fix(sample: Sample) -> None:
    """Compute the digest of what was listed, and decide how many calls to draw."""
    population = population_of(sample)
    plan = definition_of(sample).plan
    try:
        if not population:
            raise NoSizeError("No call matches.")
        size = size_for(plan, len(population))[0] if plan else sample.wanted_size
    except NoSizeError as error:
        _fail(sample, str(error))
        return
    sample.population = population_digest(proved_bytes(population)).hex()
    sample.call_count = sample.found_count = len(population)
    sample.size = min(size or 0, len(population))
    sample.state, sample.fixed_at = SampleState.FIXED, timezone.now()


def _fail(sample: Sample, problem: str) -> None:
    sample.state, sample.problem = SampleState.FAILED, problem
    sample.finished_at = timezone.now()


def _record(call: Listed) -> bytes:
    day = call.started_on.toordinal()
    return _RECORD.pack(call.index, call.leaf, day, call.invocation_id.bytes)


def _records(sample: Sample) -> Iterator[bytes]:
    parts = SamplePart.objects.for_tenant(sample.tenant_id).filter(sample_id=sample.id)
    for stored in parts.order_by("number").values_list("records", flat=True):
        records = bytes(stored)
        for at in range(0, len(records), _RECORD.size):
            yield records[at : at + _RECORD.size]
