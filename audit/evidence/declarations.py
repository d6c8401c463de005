"""The entries that declare which payloads of a bundle are gone."""

import time
from collections.abc import Iterator
from uuid import UUID

import msgspec
from tooltrail.evidence import EntryLine, Erased
from tooltrail.evidence.layout import COVERING

from audit.evidence.entries import entries_of
from audit.evidence.ledger_range import LedgerRange, NotSignedError, newest_checkpoint
from audit.ledger.stored_batches import stored_batches
from tenants.scope import tenant_scope

_WAITS, _WAIT_SECONDS = 15, 4.0  # in all, as long as an entry may wait for its signature
_BEHIND_ALL = 2**62
type Run = tuple[int, int]
"""Adjacent indexes: the first, and the last plus 1."""

type Declared = tuple[EntryLine, bytes, Erased]
"""An entry that declares which payloads are gone, its bytes, and the decoded bytes."""


def noting(
    entries: Iterator[tuple[EntryLine, bytes]], missing: list[Run]
) -> Iterator[tuple[EntryLine, bytes]]:
    """Pass the entries on; add to `missing` the runs of entries without a payload."""
    for line, raw in entries:
        if line.kind is None:
            if missing and missing[-1][1] == line.index:
                missing[-1] = missing[-1][0], line.index + 1
            else:
                missing.append((line.index, line.index + 1))
        yield line, raw


def declaring(
    tenant_id: UUID, ledger_range: LedgerRange, missing: list[Run]
) -> tuple[int, list[Declared]]:
    """The size of the checkpoint for the proofs, and its entries that declare missing payloads.

    The checkpoint is the range's own if its entries declare all missing payloads. Otherwise it
    is the newest one: payloads erased during the export were declared during the export. If that
    declaration is not signed yet, wait for the signer. Raises NotSignedError if the signature does
    not come. Then the file is cut off: a complete one would show missing payloads without their
    declaration. Payloads that no entry declares stay in the bundle as missing.
    """
    size = ledger_range.size
    declared = _declared(tenant_id, ledger_range.first_index, size, missing)
    for waits_left in reversed(range(_WAITS)):
        if _covers(declared, missing):
            break
        with tenant_scope(tenant_id):
            _, _, size = newest_checkpoint(ledger_range.epoch)
        declared = _declared(tenant_id, ledger_range.first_index, size, missing)
        unsigned = _declared(tenant_id, size, _BEHIND_ALL, missing)
        if not unsigned or not _covers([*declared, *unsigned], missing):
            break
        if not waits_left:
            raise NotSignedError("The declaration of a recent erasure is not signed yet.")
        time.sleep(_WAIT_SECONDS)
    return size, declared


def _declared(tenant_id: UUID, first_index: int, size: int, missing: list[Run]) -> list[Declared]:
    """The entries that declare some of these payloads as erased."""
    declarations: list[Declared] = []
    if not missing:
        return declarations
    for batch in stored_batches(tenant_id, first_index, size, is_own=True):
        for line, raw in entries_of(batch):
            if line.kind not in COVERING:
                continue
            try:
                erased = msgspec.json.decode(raw, type=Erased)
            except (msgspec.MsgspecError, ValueError):
                continue
            if any(
                begin < run[1] and run[0] < end for begin, end in erased.ranges for run in missing
            ):
                declarations.append((line, raw, erased))
    return declarations


def _covers(declared: list[Declared], missing: list[Run]) -> bool:
    ranges = sorted(each for *_, erased in declared for each in erased.ranges)
    for begin, end in missing:
        for first, last in ranges:
            if first <= begin < last:
                begin = last
        if begin < end:
            return False
    return True
