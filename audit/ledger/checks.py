"""Check a tenant's whole ledger: leaves from bytes, tiles from leaves, roots from tiles, actions.

A user starts a check. It is a job in slices (`tenants.slices`); each step advances `next_index`.

A payload may be missing only if a later entry of the ledger itself records that it was erased.
Tables are no evidence for that.

A check detects changes to this database by somebody without the signing key. Changes by somebody
with the key, or different logs shown to different people, are detected only by comparing with
checkpoints that are kept elsewhere.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.utils import timezone
from tooltrail.ledger import HASH_LENGTH, Kind, LedgerError, VerifierKey, open_checkpoint

from audit.ledger import actions, signatures
from audit.ledger.actions import TOLERANCE
from audit.ledger.cose import check_root
from audit.ledger.declarations import unjustified
from audit.ledger.entry_view import stored_batch
from audit.ledger.folding import grow
from audit.ledger.missing import Missing, erased_by
from audit.ledger.recompute import Remade, StoredBatch, remake
from audit.ledger.rows import unexplained
from audit.ledger.signatures import Announced, announced
from audit.ledger.status import ledger_status
from audit.ledger.tree import StoredTree
from audit.log.payload import LogPayloadError
from audit.models import (
    Batch,
    LedgerCheck,
    LedgerCheckpoint,
)
from tenants import slices
from tenants.models import new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, end_jobs

CHUNK = 20
"""Batches read per step: at most 20,000 events."""
FINDINGS_KEPT = 20


def start_check(requested_by: str, now: datetime) -> LedgerCheck | None:
    """Create a check for the worker. Returns None while another check is under way.

    The caller defers the task. Needs the tenant's scope.
    """
    tenant_id = current_tenant_id()
    last = last_check()
    if last is not None and last.state in UNDER_WAY:
        return None
    return LedgerCheck.objects.create(
        tenant_id=tenant_id,
        id=new_id(),
        created_by=requested_by,
        created_at=now,
        state=JobState.WAITING,
        size=ledger_status(tenant_id).folded,
        next_index=0,
        erased_count=0,
        checkpoint_count=0,
        finding_count=0,
        findings=[],
    )


def last_check() -> LedgerCheck | None:
    """The tenant's newest check."""
    return LedgerCheck.objects.for_tenant(current_tenant_id()).order_by("-id").first()


def find_check(pk: UUID) -> LedgerCheck | None:
    """The tenant's check with this id, or None."""
    return LedgerCheck.objects.for_tenant(current_tenant_id()).filter(id=pk).first()


def cancel_check(pk: UUID, now: datetime) -> bool:
    """Tell the worker to stop a check. Returns False if it is not under way."""
    checks = LedgerCheck.objects.for_tenant(current_tenant_id()).filter(id=pk)
    return end_jobs(checks, JobState.CANCELLED, now)


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue a check for `seconds`. Returns True if there is more to do."""
    with tenant_scope(tenant_id):
        known = announced(tenant_id)
    return slices.run_slice(lambda _: _run_chunk(tenant_id, pk, known), seconds)


def _run_chunk(tenant_id: UUID, pk: UUID, known: Announced) -> bool:
    with tenant_scope(tenant_id):
        matches = LedgerCheck.objects.for_tenant(tenant_id).filter(id=pk)
        check = matches.select_for_update().first()
        if check is None or check.state not in UNDER_WAY:
            return False
        reading = _Reading(check, known)
        reading.read()
        check.findings = [*check.findings, *reading.findings][:FINDINGS_KEPT]
        check.finding_count += len(reading.findings)
        check.state = JobState.RUNNING
        check.missing = reading.missing.flat
        if reading.is_over:
            check.state = JobState.FAILED if check.finding_count else JobState.PASSED
            check.finished_at = timezone.now()
        check.save()
        return not reading.is_over


def _last_received(check: LedgerCheck) -> datetime | None:
    """When the batch before the check's next index arrived; None at the beginning."""
    before = Batch.objects.for_tenant(check.tenant_id).filter(
        first_index__lt=check.next_index, event_count__gt=0
    )
    return before.order_by("-first_index").values_list("received_at", flat=True).first()


class _Reading:
    """One chunk of a check. It updates the check's counters."""

    def __init__(self, check: LedgerCheck, known: Announced) -> None:
        self._known = known
        self._check = check
        self._tenant_id = check.tenant_id
        self._actions: dict[int, bytes] = {}
        self._received_at = _last_received(check)
        self.findings: list[str] = []
        self.missing = Missing(check.missing)
        self.is_over = False

    def read(self) -> None:
        check = self._check
        first = check.next_index
        leaves = b"".join(self._leaves())
        self._compare_tiles(first, leaves)
        self._compare_roots(first, check.next_index)
        self._compare_actions(first, check.next_index)
        if not (self.is_over or leaves or check.next_index >= check.size):
            self._fault(f"the log ends at {check.next_index:,}, but its tiles at {check.size:,}")
        self.is_over = self.is_over or not leaves or check.next_index >= check.size
        if self.is_over:
            if self.missing:
                self._read_on()
                self.findings += self.missing.messages()
            self._compare_lost()
            # The current size, as entries may have arrived since the check began.
            self.findings += actions.strays(self._tenant_id, ledger_status(self._tenant_id).size)
            self.findings += signatures.disagreements(self._tenant_id, self._known)
            self.findings += unexplained(self._tenant_id)
            self.findings += unjustified(self._tenant_id)

    def _leaves(self) -> Iterator[bytes]:
        check = self._check
        rows = (
            Batch.objects.for_tenant(self._tenant_id)
            .filter(first_index__gte=check.next_index, first_index__lt=check.size)
            .filter(event_count__gt=0)
            .order_by("first_index")
        )
        for batch in map(stored_batch, rows[:CHUNK]):
            if batch.first_index != check.next_index:
                self._fault(
                    f"a batch begins at {batch.first_index:,} instead of {check.next_index:,}"
                )
                self.is_over = True  # all later indexes would be wrong, too
                return
            if len(batch.leaves) != batch.event_count * HASH_LENGTH:
                self._fault(f"the batch at {batch.first_index:,} does not have one leaf per event")
                self.is_over = True
                return
            self._compare_events(batch)
            self._compare_times(batch)
            check.next_index += batch.event_count
            yield batch.leaves

    def _compare_times(self, batch: StoredBatch) -> None:
        """The log is in the order of arrival: a batch inserted later, or a wrong clock, is not."""
        before, self._received_at = self._received_at, batch.received_at
        at = f"{batch.received_at:%Y-%m-%d %H:%M} UTC"
        arrived = f"entry {batch.first_index:,}: it arrived at {at}"
        if before is not None and before - batch.received_at > TOLERANCE:
            self._fault(
                f"{arrived}, and the one before it at {before:%Y-%m-%d %H:%M}: it was inserted"
                " later, or a clock was wrong"
            )
        if batch.received_at - timezone.now() > TOLERANCE:
            self._fault(f"{arrived}, which is in the future")

    def _compare_events(self, batch: StoredBatch) -> None:
        try:
            remade = remake(batch)
        except LogPayloadError as error:
            self._fault(f"the payload of the batch at {batch.first_index:,} {error}")
            return
        for index, one in enumerate(remade, batch.first_index):
            if one.entry is not None:
                if one.entry.kind is Kind.ACTION:
                    self._actions[index] = one.raw
                self._explain(index, one)
            elif one.raw:
                self._fault(f"entry {index:,}: the stored bytes do not match the hash")
            else:
                self.missing.add(index)

    def _explain(self, index: int, one: Remade) -> None:
        if self.missing:
            for begin, end in erased_by(index, one):
                self._check.erased_count += self.missing.explain(begin, end)

    def _read_on(self) -> None:
        """Read entries added since the check began: they may explain missing payloads."""
        own = Batch.objects.for_tenant(self._tenant_id).filter(
            first_index__gte=self._check.next_index, is_own=True
        )
        for batch in map(stored_batch, own.order_by("first_index").iterator(CHUNK)):
            with suppress(LogPayloadError):
                for index, one in enumerate(remake(batch), batch.first_index):
                    self._explain(index, one)

    def _compare_tiles(self, first: int, leaves: bytes) -> None:
        stored = StoredTree(self._tenant_id, first)
        later = StoredTree(self._tenant_id, first + len(leaves) // HASH_LENGTH)
        for tile, hashes in grow(first, leaves, stored.tile):
            if later.tile(tile) != hashes:
                self._fault(f"{tile.path} does not match the leaves in the log")

    def _compare_roots(self, first: int, end: int) -> None:
        """Check the checkpoints whose last entry is in the chunk just read."""
        of_size = LedgerCheckpoint.objects.for_tenant(self._tenant_id).filter(
            size__gt=first, size__lte=end, epoch__lte=self._known.epoch
        )
        for one in of_size.order_by("epoch", "size"):
            self._compare_root(one)

    def _compare_lost(self) -> None:
        """Check the checkpoints of earlier epochs that name entries which the log has no more."""
        lost = LedgerCheckpoint.objects.for_tenant(self._tenant_id).filter(
            size__gt=self._check.size, epoch__lt=self._known.epoch
        )
        for one in lost.order_by("epoch", "size"):
            self._compare_root(one)

    def _compare_root(self, one: LedgerCheckpoint) -> None:
        self._check.checkpoint_count += 1
        vkeys = [VerifierKey(one.origin, key) for key in self._known.public_keys]
        is_in_tree = one.size <= min(self._check.size, self._known.still_signed(one.epoch))
        try:
            signed = open_checkpoint(one.note.encode(), one.origin, vkeys)
            root = StoredTree(self._tenant_id, one.size).root() if is_in_tree else signed.root
        except LedgerError as error:
            self._fault(f"the checkpoint of {one.size:,} entries: {error}")
            return
        if (signed.size, signed.root) != (one.size, bytes(one.root)) or signed.root != root:
            self._fault(f"the checkpoint of {one.size:,} entries has a different root")
        for receipt in one.receipts:
            try:
                check_root(bytes(receipt), one.origin, signed.root, self._known.public_keys)
            except LedgerError as error:
                self._fault(f"the checkpoint of {one.size:,} entries: {error}")

    def _compare_actions(self, first: int, end: int) -> None:
        self.findings += actions.disagreements(self._tenant_id, first, end, self._actions)

    def _fault(self, what: str) -> None:
        self.findings.append(what)
