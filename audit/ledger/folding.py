"""Fold new leaves of the log into tiles, in the order of the log.

A slice is one transaction of the keeper. It begins where the tiles end and adds whole
batches, so a killed process has added all of its slice or nothing. Two workers wait for each other,
so that an epoch can begin without any tiles. Without this lock, both would only make the same
tiles from the same leaves (`grow_tiles`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import connections
from tooltrail.ledger import HASH_LENGTH, Tile, root_of

from audit.sql import arrays
from audit.sql.run import run
from config.postgresql.aliases import KEEPER
from tenants.scope import tenant_scope

_SILENT_MAX = "10s"
"""If a machine stops while it folds or signs, PostgreSQL ends its transaction after this time."""
BATCHES = 200
"""Batches per slice: at most 200,000 leaves, 6.4 MB."""
_HEIGHT = 8
_FULL = 1 << _HEIGHT


class LogBrokenError(Exception):
    """The log is inconsistent, so it cannot be folded; the message says where and how."""


@dataclass(frozen=True, slots=True)
class Folded:
    """How many leaves the tiles have, and whether there may be more to fold."""

    size: int
    has_more: bool


def take_turn(lock: str) -> None:
    """Wait until no other machine has this lock of the ledger: a statement, such as `lock_tiles`.

    Needs the keeper's scope; holds the lock until it ends.
    """
    with connections[KEEPER].cursor() as cursor:
        cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_SILENT_MAX}'")
    run(lock, using=KEEPER)


def fold_slice(tenant_id: UUID, *, batches: int = BATCHES) -> Folded:
    """Add the next batches' leaves to the tenant's tiles. Raises LogBrokenError.

    Takes 1 to 2 µs per event. Changes nothing without new events.
    """
    with tenant_scope(tenant_id, using=KEEPER):
        take_turn("lock_tiles")
        ((_, size, *_),) = run("ledger_status", using=KEEPER)
        read = run(
            "leaves_from",
            using=KEEPER,
            first_index=size,
            batch_limit=batches,
        )
        leaves = _joined(size, read)
        if leaves:
            grown = list(grow(size, leaves, lambda tile: _stored(tenant_id, tile)))
            run(
                "grow_tiles",
                using=KEEPER,
                levels=arrays.ints([tile.level for tile, _ in grown]),
                indexes=arrays.bigints([tile.index for tile, _ in grown]),
                hashes=arrays.blobs([data for _, data in grown]),
            )
    return Folded(size + len(leaves) // HASH_LENGTH, len(read) == batches)


def grow(size: int, leaves: bytes, stored: Callable[[Tile], bytes]) -> Iterable[tuple[Tile, bytes]]:
    """The tiles that change when leaf hashes are added to a log of `size`, level by level.

    Pure. Calls `stored` for the last tile of a level if that tile is partial, with its width.
    """
    level, added = 0, leaves
    while added:
        index, width = size >> _HEIGHT, size & (_FULL - 1)
        data = (stored(Tile(level, index, width)) if width else b"") + added
        roots = []
        for at in range(0, len(data), _FULL * HASH_LENGTH):
            hashes = data[at : at + _FULL * HASH_LENGTH]
            tile = Tile(level, index + at // (_FULL * HASH_LENGTH), len(hashes) // HASH_LENGTH)
            yield tile, hashes
            if tile.width == _FULL:
                roots.append(root_of(tile.hashes(hashes)))
        level, size, added = level + 1, index, b"".join(roots)


def _joined(size: int, read: Iterable[tuple[int, int, bytes]]) -> bytes:
    parts = []
    for first_index, event_count, leaves in read:
        if first_index != size:
            raise LogBrokenError(f"the log has a batch at {first_index:,} instead of {size:,}")
        if len(leaves) != event_count * HASH_LENGTH:
            raise LogBrokenError(
                f"the batch at {first_index:,} has {len(leaves):,} bytes of leaves,"
                f" which do not fit {event_count:,} events"
            )
        parts.append(leaves)
        size += event_count
    return b"".join(parts)


def _stored(tenant_id: UUID, tile: Tile) -> bytes:
    rows = run(
        "tiles",
        tenant_id=tenant_id,
        using=KEEPER,
        levels=arrays.ints([tile.level]),
        indexes=arrays.bigints([tile.index]),
        widths=arrays.ints([tile.width]),
    )
    data: bytes = rows[0][2] if rows else b""
    if len(data) != tile.width * HASH_LENGTH:
        raise LogBrokenError(f"{tile.path} does not have the width that its neighbours require")
    return data
