"""From the log to tiles: any size, in any portions, by two workers, killed at any moment."""

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from tooltrail.ledger import (
    Tile,
    consistency_proof,
    inclusion_proof,
    root_of,
    tiles_between,
    verify_consistency,
    verify_inclusion,
)

from audit.ledger import folding
from audit.ledger.folding import LogBrokenError, fold_slice, grow
from audit.ledger.tree import StoredTree
from audit.sql import run as statements
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import (
    append,
    as_owner,
    leaves,
    status_of,
)


def subtrees(hashes: list[bytes]) -> Callable[[int, int], bytes]:
    return lambda level, index: root_of(hashes[index << level : (index + 1) << level])


@pytest.mark.slow
def test_proofs_from_the_tables_are_correct_for_every_size_up_to_300(acme: Cast) -> None:
    """After each entry: root, inclusion and consistency proof equal those of RFC 6962."""
    hashes = leaves(300)
    chosen = random.Random(11)
    for size in range(1, 301):
        append(acme.tenant, hashes[size - 1 : size])
        assert fold_slice(acme.tenant.id).size == size
        known = hashes[:size]
        index, old = chosen.randrange(size), chosen.randrange(1, size + 1)
        with tenant_scope(acme.tenant.id):
            tree = StoredTree(acme.tenant.id, size)
            root, leaf = tree.root(), tree.leaf(index)
            inclusion, consistency = tree.inclusion(index), tree.consistency(old)
        assert root == root_of(known)
        assert leaf == known[index]
        assert inclusion == inclusion_proof(index, size, subtrees(known))
        assert consistency == consistency_proof(old, size, subtrees(known))
        verify_inclusion(known[index], index, size, inclusion, root)
        verify_consistency(old, root_of(known[:old]), size, root, consistency)


@pytest.mark.slow
def test_larger_log_still_proves_its_earlier_sizes(acme: Cast) -> None:
    """Older trees are proved from tiles that have grown since: 300 sizes of a log of 70,000."""
    hashes = leaves(70_000)
    for at in range(0, 70_000, 1_000):
        append(acme.tenant, hashes[at : at + 1_000])
    while fold_slice(acme.tenant.id, batches=7).has_more:
        pass
    for size in [*range(1, 300, 23), 65_535, 65_536, 65_537, 65_793, 70_000]:
        with tenant_scope(acme.tenant.id):
            tree = StoredTree(acme.tenant.id, size)
            root = tree.root()
            verify_inclusion(hashes[size // 2], size // 2, size, tree.inclusion(size // 2), root)
        assert root == root_of(hashes[:size])


def test_tiles_match_the_specification() -> None:
    """For any portions of leaves, exactly the tiles that `tiles_between` names are stored."""
    hashes = leaves(66_000)
    chosen = random.Random(5)
    tiles: dict[tuple[int, int], bytes] = {}
    size = 0

    def stored(tile: Tile) -> bytes:
        return tiles[tile.level, tile.index]

    while size < len(hashes):
        more = chosen.choice([1, 2, 255, 256, 257, 1_000, 20_000])
        added = hashes[size : size + more]
        grown = list(grow(size, b"".join(added), stored))
        assert [tile for tile, _ in grown] == list(tiles_between(size, size + len(added)))
        tiles |= {(tile.level, tile.index): data for tile, data in grown}
        size += len(added)
    assert {at[0] for at in tiles} == {0, 1, 2}
    assert all(tile.hashes(tiles[tile.level, tile.index]) for tile in tiles_between(0, len(hashes)))


def test_stored_events_are_folded(acme: Cast) -> None:
    for _ in range(3):
        send_events(acme.tenant, make_call())
    assert fold_slice(acme.tenant.id).size == 6
    assert fold_slice(acme.tenant.id).size == 6


def test_two_concurrent_workers_fold_the_same_tree(acme: Cast) -> None:
    """Both fold while entries arrive; the tiles equal those of one worker."""
    hashes = leaves(20_000)
    done = threading.Event()
    failures: list[Exception] = []

    def work() -> None:
        try:
            while not done.is_set():
                fold_slice(acme.tenant.id, batches=2)
        except Exception as error:
            failures.append(error)
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for at in range(0, len(hashes), 333):
        append(acme.tenant, hashes[at : at + 333])
    done.set()
    for worker in workers:
        worker.join()
    while fold_slice(acme.tenant.id).has_more:
        pass
    assert failures == []
    with tenant_scope(acme.tenant.id):
        assert StoredTree(acme.tenant.id, len(hashes)).root() == root_of(hashes)


class Killed(BaseException):
    """Not caught by the product: as if the process was killed at that point."""


@pytest.mark.parametrize("name", ["lock_tiles", "ledger_status", "leaves_from", "grow_tiles"])
@pytest.mark.parametrize("is_after", [False, True])
def test_folding_resumes_after_a_worker_is_killed_at_any_statement(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, name: str, is_after: bool
) -> None:
    hashes = leaves(700)
    append(acme.tenant, hashes[:300])
    fold_slice(acme.tenant.id)
    append(acme.tenant, hashes[300:])

    def run(statement: str, **parameters: Any) -> Any:
        if statement != name:
            return statements.run(statement, **parameters)
        if is_after:
            statements.run(statement, **parameters)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(folding, "run", run)
        with pytest.raises(Killed):
            fold_slice(acme.tenant.id)
    assert status_of(acme.tenant).folded == 300
    assert fold_slice(acme.tenant.id).size == 700
    with tenant_scope(acme.tenant.id):
        assert StoredTree(acme.tenant.id, 700).root() == root_of(hashes)


def test_log_with_a_gap_is_not_folded(acme: Cast) -> None:
    for part in range(3):
        append(acme.tenant, leaves(10, bytes([part])))
    scope = [acme.tenant.id]
    as_owner("DELETE FROM batch WHERE tenant_id = %s AND first_index = 10", scope)
    with pytest.raises(LogBrokenError, match="a batch at 20 instead of 10"):
        fold_slice(acme.tenant.id)
    as_owner("UPDATE batch SET first_index = 10 WHERE tenant_id = %s AND first_index = 20", scope)
    as_owner("UPDATE batch SET event_count = 11 WHERE tenant_id = %s AND first_index = 10", scope)
    with pytest.raises(LogBrokenError, match="do not fit 11 events"):
        fold_slice(acme.tenant.id)


def test_truncated_tile_is_detected(acme: Cast) -> None:
    append(acme.tenant, leaves(600))
    fold_slice(acme.tenant.id)
    as_owner(
        "UPDATE ledger_tile SET hashes = substring(hashes FOR 32)"
        " WHERE tenant_id = %s AND level = 1",
        [acme.tenant.id],
    )
    append(acme.tenant, leaves(600, b"more"))
    with pytest.raises(LogBrokenError, match="tile/1/000"):
        fold_slice(acme.tenant.id)


def test_tenant_without_events_has_no_tiles(acme: Cast) -> None:
    folded = fold_slice(acme.tenant.id)
    assert (folded.size, folded.has_more) == (0, False)
    assert status_of(acme.tenant).signed_size is None
