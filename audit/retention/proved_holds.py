"""The holds that erasing must respect: those of the table, if the ledger's entries say the same.

Whoever can write to the database could take a hold away from the table, let retention erase, and
put the row back. The entries of the ledger cannot be taken away. So nothing is erased while the
two differ.
"""

from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.ledger import Kind

from audit.ledger.own_entries import own_entries
from audit.ledger.status import ledger_status
from audit.models import LegalHold
from audit.retention.holds import holds_in_force

type _Covers = dict[str, dict[str, Any]]
"""What each hold in force covers, by its id."""

_read: dict[UUID, tuple[int, _Covers]] = {}
"""How far this process has read a tenant's entries, and the holds in force there."""


class HoldsAlteredError(Exception):
    """The holds in the database are not those of the ledger's entries. Nothing may be erased."""

    def __init__(self) -> None:
        super().__init__(
            "The legal holds in the database are not those of the ledger. Nothing is erased until"
            " they are. Verify the ledger to see which ones differ."
        )


class _HoldEntry(msgspec.Struct):
    hold: str
    state: str
    covers: dict[str, Any] = {}


def holds_to_keep(tenant_id: UUID, *, using: str) -> list[LegalHold]:
    """The holds in force. Raises HoldsAlteredError. Needs the scope, with the record locked.

    Three queries. The first call in a process reads all entries that the server made.
    """
    holds = holds_in_force(tenant_id, using=using)
    stored = {str(hold.id): hold.covers for hold in holds}
    if stored != _by_entries(tenant_id, using):
        raise HoldsAlteredError
    return holds


def _by_entries(tenant_id: UUID, using: str) -> _Covers:
    size = ledger_status(tenant_id, using=using).size
    read_to, known = _read.get(tenant_id, (0, {}))
    if read_to > size:  # the database was restored from a backup
        read_to, known = 0, {}
    covers = dict(known)
    for entry in own_entries(tenant_id, {Kind.HOLD}, first_index=read_to, using=using):
        with suppress(msgspec.MsgspecError, ValueError):
            hold_entry = msgspec.json.decode(entry.raw, type=_HoldEntry)
            if hold_entry.state == "set":
                covers[hold_entry.hold] = hold_entry.covers
            else:
                covers.pop(hold_entry.hold, None)
    _read[tenant_id] = size, covers
    return covers
