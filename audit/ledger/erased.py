"""Why a payload is missing: find the entry of the ledger that records its erasure."""

from dataclasses import dataclass
from datetime import datetime

import msgspec
from tooltrail.evidence import Erased

from audit.ledger.entry_view import entry_at
from audit.ledger.missing import erased_by
from audit.ledger.recompute import Remade
from audit.models import LedgerErasure
from tenants.scope import current_tenant_id

_READ_MAX = 20


@dataclass(frozen=True, slots=True)
class ErasedBy:
    """When, why and by whom a payload was erased, according to an entry of the ledger."""

    entry_index: int
    at: datetime
    by_retention: bool
    reason: str
    actor: str


class _ErasureEntry(Erased):
    actor: str = ""


def erased_of(index: int) -> ErasedBy | None:
    """The first ledger entry that explains the missing payload at an index; None without one.

    Two queries, and one more for each entry whose span includes the index but whose ranges do not.
    """
    spanning = LedgerErasure.objects.for_tenant(current_tenant_id()).filter(
        begin_index__lte=index, end_index__gt=index
    )
    for each in spanning.order_by("entry_index")[:_READ_MAX]:
        view = entry_at(each.entry_index)
        if view is None or view.entry is None:
            continue
        one = Remade(view.entry, view.leaf, view.salt, view.raw)
        if any(begin <= index < end for begin, end in erased_by(view.index, one)):
            erasure = msgspec.json.decode(view.raw, type=_ErasureEntry)
            by_retention = each.erasure_id is None
            return ErasedBy(
                view.index, view.received_at, by_retention, erasure.reason, erasure.actor
            )
    return None
