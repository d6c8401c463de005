"""Compares a log with the roots that the signer has stored, when a new epoch begins.

After a restore the log is shorter than what was signed, or somebody changed it. The signer keeps
the roots of many sizes (`signer_state`), so it can tell up to where the log is still the signed
one. The roots are made from the leaves in the log: its tiles may be another state's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from tooltrail.ledger import HASH_LENGTH
from tooltrail.ledger.frontier import Frontier

from audit.sql.run import run

_BATCHES = 200


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far a log agrees with what was signed."""

    proved: int
    """The first entries that are the signed ones: the largest remembered size whose root fits."""
    differs_at: int | None
    """The smallest remembered size whose root does not fit; None if all fit."""
    gone: int
    """Signed entries behind `proved`: the log does not have them any more, or not as signed."""


def compare(
    tenant_id: UUID,
    remembered: Iterable[tuple[int, bytes]],
    size: int,
    *,
    using: str = DEFAULT_DB_ALIAS,
) -> Comparison:
    """Compare the log's first `size` entries with remembered roots. Needs the tenant's scope.

    Reads the leaves once: about 1 µs an entry.
    """
    roots = dict(remembered)
    largest = max(roots, default=0)
    proved, differs_at = 0, None
    wanted = sorted(each for each in roots if each <= size)
    for at, root in _roots(tenant_id, wanted, using):
        if root != roots[at]:
            differs_at = at
            break
        proved = at
    return Comparison(proved, differs_at, largest - proved)


def _roots(tenant_id: UUID, sizes: list[int], using: str) -> Iterable[tuple[int, bytes]]:
    """The log's roots at some sizes, ascending. Ends early if the log has a gap."""
    tree, waiting, first_index = Frontier(), list(sizes), 0
    while waiting:
        rows = run(
            "leaves_from",
            using=using,
            tenant_id=tenant_id,
            first_index=first_index,
            batch_limit=_BATCHES,
        )
        if not rows:
            break
        for begin, count, leaves in rows:
            if begin != tree.size or len(leaves) != count * HASH_LENGTH:
                rows = []
                break
            at = 0
            while waiting and waiting[0] <= begin + count:
                end = (waiting[0] - begin) * HASH_LENGTH
                tree.extend(leaves[at:end])
                yield waiting.pop(0), tree.root
                at = end
            tree.extend(leaves[at:])
            first_index = begin + count
        if not rows:
            break
    for size in waiting:  # the log has fewer entries than it says, or a gap
        yield size, b""
