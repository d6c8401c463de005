"""Sends what streams have not sent yet: in order, at least once, and from one process.

A stream's cursor is the index of its next entry. It advances only when the receiver has
acknowledged all entries before it. A claim in the stream's row keeps two workers from sending the
same stream; it ends by itself, so the stream of a killed worker goes on from its cursor. Records
are made in this thread, with the database, and sent in others, so a receiver that does not answer
delays its own stream only. No transaction is open while records are sent.
"""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from audit.ledger.proofs import newest_checkpoint
from audit.models import LedgerCheckpoint, Stream, StreamWay, TenantQuerySet
from audit.stream.reading import batches_from
from audit.stream.records import Record, RecordMaker
from audit.stream.ways.opening import open_way
from audit.stream.ways.way import SendError, Way
from config.boxes import BoxError
from tenants.actions import storable_text
from tenants.models import Tenant, new_id
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

LEASE = timedelta(seconds=90)
"""How long a claim holds, from the last page: longer than a receiver may take for one."""
FIRST_DELAY = timedelta(seconds=5)
"""Before the second attempt. It doubles with each attempt, up to `DELAY_MAX`."""
DELAY_MAX = timedelta(minutes=5)
AT_ONCE = 16
"""Streams that are sent at once, each in a thread."""
SLICE_S = 3.0
_FAILURE_MAX = 500
_WINDOWS = {StreamWay.SYSLOG: 5_000, StreamWay.SPLUNK: 5_000, StreamWay.S3: 20_000}
"""Records after which the receiver is asked to acknowledge; others do so for each page."""


def due_streams(tenant_id: UUID, now: datetime) -> list[UUID]:
    """The streams of the tenant that have something to send and may. Needs the scope."""
    checkpoint = newest_checkpoint()
    if checkpoint is None:
        return []
    due = _due(tenant_id, now).filter(next_index__lt=checkpoint.size)
    return list(due.order_by("next_attempt_at", "id").values_list("id", flat=True))


def run_slice(streams: Sequence[tuple[UUID, UUID]], *, seconds: float = SLICE_S) -> bool:
    """Send streams, given as tenant and stream, for a few seconds. Returns whether more is due.

    Opens its own scopes, so no scope may be open.
    """
    until = time.monotonic() + seconds
    runs = [run for place in streams[:AT_ONCE] if (run := _Run.begin(*place)) is not None]
    with ThreadPoolExecutor(max(1, len(runs))) as pool:
        while active := [run for run in runs if not run.is_over]:
            for run in active:
                run.step(pool, is_late=time.monotonic() >= until)
            if flying := [run.future for run in active if run.future is not None]:
                wait(flying, return_when=FIRST_COMPLETED)
    for run in runs:
        run.close()
    return len(streams) > AT_ONCE or any(run.has_more for run in runs)


@dataclass(frozen=True, slots=True)
class _Page:
    """Records that are sent together, and the index behind them."""

    records: Sequence[Record]
    end: int


class _Run:
    """One stream while it is sent."""

    def __init__(self, tenant: Tenant, stream: Stream, claim: UUID, way: Way) -> None:
        self._tenant, self._stream, self._claim, self._way = tenant, stream, claim, way
        self._read_to = self._sent_to = stream.next_index
        self._unsettled = 0
        self._checkpoint: LedgerCheckpoint | None = None
        self._maker: RecordMaker | None = None
        self._ready: _Page | None = None
        self._settles = False
        self._flying: _Page | None = None
        self.future: Future[None] | None = None
        self.is_over = False
        self.has_more = False

    @classmethod
    def begin(cls, tenant_id: UUID, stream_id: UUID) -> "_Run | None":
        """Claim a stream; None if it is not due, or another worker has it."""
        claim = new_id()
        with tenant_scope(tenant_id):
            now = timezone.now()
            due = _due(tenant_id, now).filter(id=stream_id)
            if not due.update(claim=claim, claimed_until=now + LEASE):
                return None
            stream = Stream.objects.for_tenant(tenant_id).get(id=stream_id)
            tenant = Tenant.objects.get(pk=tenant_id)
        try:
            return cls(tenant, stream, claim, open_way(stream))
        except (BoxError, SendError) as error:
            _fail(stream, claim, str(error))
            return None

    def step(self, pool: ThreadPoolExecutor, *, is_late: bool) -> None:
        """Go on if what was sent has landed. What fails is noted: other streams go on."""
        try:
            self._step(pool, is_late=is_late)
        except (SendError, BoxError) as error:
            self._end(str(error))
        except Exception:
            _log.exception("stream %s of tenant %s", self._stream.id, self._tenant.id)
            self._end("An error of this server; its log says more.")

    def close(self) -> None:
        """Let go of the connection."""
        self._way.close()

    def _step(self, pool: ThreadPoolExecutor, *, is_late: bool) -> None:
        if self.future is not None:
            if not self.future.done():
                return
            self._land(self.future)
        if self._ready is None and not is_late and not self.is_over:
            self._ready = self._read()
        if self.is_over:  # somebody paused, moved or deleted it, or the claim was too old
            return
        if self._ready is not None and not is_late:
            self._fly(pool, self._ready)
            self._ready = self._read()  # meanwhile
        elif self._unsettled:
            self._fly(pool, _Page((), self._sent_to), settles=True)
        else:
            self.has_more = is_late
            self._end()

    def _read(self) -> _Page | None:
        """The next page of signed entries; None without one."""
        of, tenant_id = self._stream.of, self._tenant.id
        with tenant_scope(tenant_id):
            if not self._mine().update(claimed_until=timezone.now() + LEASE):
                self.is_over = True
                return None
            if self._checkpoint is None or self._read_to >= self._checkpoint.size:
                self._checkpoint = newest_checkpoint()
                if self._checkpoint is None or self._read_to >= self._checkpoint.size:
                    return None
                self._maker = RecordMaker(
                    self._tenant,
                    of,
                    self._stream.format,
                    self._checkpoint,
                    has_payloads=self._stream.payloads_by is not None,
                    has_proofs=self._stream.has_proofs,
                )
            assert self._maker is not None, "made with the checkpoint"
            begin, end = self._read_to, self._checkpoint.size
            batches = batches_from(tenant_id, of, begin, end)
            records = self._maker.records(batches, begin)
            if batches:
                end = min(end, batches[-1].first_index + batches[-1].event_count)
            self._read_to = end
            return _Page(records, end)

    def _fly(self, pool: ThreadPoolExecutor, page: _Page, *, settles: bool = False) -> None:
        """Send a page in another thread."""
        count = self._unsettled + len(page.records)
        self._settles = settles or count >= _WINDOWS.get(StreamWay(self._stream.way), 0)
        self._flying, self._ready = page, None
        self.future = pool.submit(_send, self._way, page.records, settles=self._settles)

    def _land(self, future: Future[None]) -> None:
        """Note what was sent, and advance the cursor if it was acknowledged. Raises SendError."""
        page, self.future, self._flying = self._flying, None, None
        future.result()
        assert page is not None, "it was flying"
        self._sent_to = page.end
        self._unsettled += len(page.records)
        if not self._settles and self._unsettled:
            return
        with tenant_scope(self._tenant.id):
            now = timezone.now()
            is_mine = self._mine().update(
                next_index=page.end,
                sent_count=F("sent_count") + self._unsettled,
                **({"sent_at": now} if self._unsettled else {}),
                failure="",
                failing_since=None,
                attempt_count=0,
                claimed_until=now + LEASE,
            )
        self._unsettled = 0
        self.is_over = not is_mine

    def _end(self, failure: str = "") -> None:
        """Give the claim back, and say why if it failed."""
        self.is_over = True
        if failure:
            _fail(self._stream, self._claim, failure)
            return
        with tenant_scope(self._tenant.id):
            self._mine().update(claim=None, claimed_until=None)

    def _mine(self) -> TenantQuerySet[Stream]:
        streams = Stream.objects.for_tenant(self._tenant.id)
        return streams.filter(id=self._stream.id, claim=self._claim)


def _send(way: Way, records: Sequence[Record], *, settles: bool) -> None:
    if records:
        way.send(records)
    if settles:
        way.settle()


def _due(tenant_id: UUID, now: datetime) -> TenantQuerySet[Stream]:
    streams = Stream.objects.for_tenant(tenant_id)
    return streams.filter(
        Q(claimed_until=None) | Q(claimed_until__lt=now), paused_at=None, next_attempt_at__lte=now
    )


def _fail(stream: Stream, claim: UUID, failure: str) -> None:
    """Note why it failed, and when it is tried again."""
    with tenant_scope(stream.tenant_id):
        mine = Stream.objects.for_tenant(stream.tenant_id).filter(id=stream.id, claim=claim)
        row = mine.select_for_update().first()
        if row is None:
            return
        now = timezone.now()
        mine.update(
            claim=None,
            claimed_until=None,
            failure=storable_text(failure)[:_FAILURE_MAX],
            failing_since=Coalesce("failing_since", Value(now)),
            attempt_count=row.attempt_count + 1,
            next_attempt_at=now + min(FIRST_DELAY * 2 ** min(row.attempt_count, 10), DELAY_MAX),
        )
