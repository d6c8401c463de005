"""Root and proofs against known answers, the definition in RFC 6962, and every altered bit."""

import random
from collections.abc import Sequence

import pytest
from tooltrail.ledger import (
    EMPTY_ROOT,
    ProofError,
    consistency_proof,
    inclusion_proof,
    leaf_of,
    root_of,
    tree_root,
    verify_consistency,
    verify_inclusion,
)

from sdk.tests.support.ledger_book import (
    LEAVES,
    alike,
    flips,
    mth,
    path,
    subproof,
    subtree,
)

# The vectors of the Certificate Transparency reference implementation (merkle_tree_test.cc of
# google/certificate-transparency), which transparency-dev/merkle and others took over.
CT_LEAVES = [
    leaf_of(bytes.fromhex(entry))
    for entry in (
        *("", "00", "10", "2021", "3031", "40414243"),
        *("5051525354555657", "606162636465666768696a6b6c6d6e6f"),
    )
]
CT_ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
B, E = (
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
)
CD, EF, GH = (
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
)
ABCD, EFGH = CT_ROOTS[4], "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
G = "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f"
HUNDRED_MILLION = 100_000_000


def ct_subtree(level: int, index: int) -> bytes:
    return root_of(CT_LEAVES[index << level : (index + 1) << level])


@pytest.mark.parametrize("size", range(9))
def test_known_roots_match(size: int) -> None:
    assert root_of(CT_LEAVES[:size]).hex() == CT_ROOTS[size]
    assert tree_root(size, ct_subtree).hex() == CT_ROOTS[size]


@pytest.mark.parametrize(
    ("index", "size", "proof"),
    [
        (0, 1, []),
        (0, 8, [B, CD, EFGH]),
        (5, 8, [E, GH, ABCD]),
        (2, 3, [CT_ROOTS[2]]),
        (1, 5, [CT_ROOTS[1], CD, E]),
    ],
)
def test_known_inclusion_proofs_match(index: int, size: int, proof: list[str]) -> None:
    computed = inclusion_proof(index, size, ct_subtree)

    assert [each.hex() for each in computed] == proof
    verify_inclusion(CT_LEAVES[index], index, size, computed, bytes.fromhex(CT_ROOTS[size]))


@pytest.mark.parametrize(
    ("old", "new", "proof"),
    [
        (1, 1, []),
        (1, 8, [B, CD, EFGH]),
        (6, 8, [EF, GH, ABCD]),
        (2, 5, [CD, E]),
        (6, 7, [EF, G, ABCD]),
    ],
)
def test_known_consistency_proofs_match(old: int, new: int, proof: list[str]) -> None:
    computed = consistency_proof(old, new, ct_subtree)
    roots = bytes.fromhex(CT_ROOTS[old]), bytes.fromhex(CT_ROOTS[new])

    assert [each.hex() for each in computed] == proof
    verify_consistency(old, roots[0], new, roots[1], computed)


@pytest.mark.sampled("proofs of a tree", 2)
@pytest.mark.slow
def test_inclusion_proofs_up_to_size_300_match_rfc_6962() -> None:
    for size in range(1, 301):
        root = tree_root(size, subtree)
        assert root == mth(0, size) == root_of(LEAVES[:size])
        for index in range(size):
            proof = inclusion_proof(index, size, subtree)
            assert proof == path(index, 0, size)
            verify_inclusion(LEAVES[index], index, size, proof, root)


@pytest.mark.parametrize("size", [4, 21, 300])
def test_a_proof_can_begin_above_a_complete_subtree(size: int) -> None:
    for index in range(size - size % 4):
        proof = inclusion_proof(index, size, subtree, height=2)
        assert proof == path(index, 0, size)[2:]


@pytest.mark.sampled("proofs of a tree", 2)
@pytest.mark.slow
def test_consistency_proofs_up_to_size_300_match_rfc_6962() -> None:
    for new in range(1, 301):
        for old in range(1, new + 1):
            proof = consistency_proof(old, new, subtree)
            assert proof == subproof(old, 0, new, True)
            verify_consistency(old, mth(0, old), new, mth(0, new), proof)


def test_every_log_is_consistent_only_with_the_true_empty_log() -> None:
    verify_consistency(0, EMPTY_ROOT, 0, EMPTY_ROOT, [])
    verify_consistency(0, EMPTY_ROOT, 7, mth(0, 7), consistency_proof(0, 7, subtree))
    for arguments in ((0, LEAVES[0], 7, mth(0, 7)), (0, LEAVES[0], 0, LEAVES[0])):
        assert not consistent(*arguments, [])
    assert not consistent(0, EMPTY_ROOT, 7, mth(0, 7), [LEAVES[0]])


def test_proofs_in_a_log_of_100_million_have_at_most_27_and_28_hashes() -> None:
    subtrees = alike(LEAVES[0])
    reads = 0

    def counted(level: int, index: int) -> bytes:
        nonlocal reads
        reads += 1
        return subtrees(level, index)

    size = HUNDRED_MILLION
    root = tree_root(size, subtrees)
    lengths: dict[str, set[int]] = {"inclusion": set(), "consistency": set()}
    some = random.Random(0)
    for index in (0, 1, size // 2 - 1, size - 1, *(some.randrange(size) for _ in range(300))):
        reads = 0
        proof = inclusion_proof(index, size, counted)
        lengths["inclusion"].add(len(proof))
        assert reads <= 2 * 27
        verify_inclusion(LEAVES[0], index, size, proof, root)

        reads = 0
        proof = consistency_proof(index + 1, size, counted)
        lengths["consistency"].add(len(proof))
        assert reads <= 2 * 27
        verify_consistency(index + 1, tree_root(index + 1, subtrees), size, root, proof)
    assert max(lengths["inclusion"]) == 27
    assert max(lengths["consistency"]) == 28  # RFC 6962, section 2.1.2: ⌈log2(n)⌉ + 1


@pytest.mark.sampled("proofs of a tree", 2)
@pytest.mark.slow
def test_flipped_bit_invalidates_an_inclusion_proof() -> None:
    for size in range(1, 10):
        for index in range(size):
            proof, root, leaf = path(index, 0, size), mth(0, size), LEAVES[index]
            assert included(leaf, index, size, proof, root)
            assert not any(included(each, index, size, proof, root) for each in flips(leaf))
            assert not any(included(leaf, index, size, proof, each) for each in flips(root))
            assert not any(included(leaf, index, size, each, root) for each in changed(proof))


@pytest.mark.sampled("proofs of a tree", 2)
@pytest.mark.slow
def test_flipped_bit_invalidates_a_consistency_proof() -> None:
    for new in range(1, 10):
        for old in range(1, new + 1):
            proof, before, after = subproof(old, 0, new, True), mth(0, old), mth(0, new)
            assert consistent(old, before, new, after, proof)
            assert not any(consistent(old, each, new, after, proof) for each in flips(before))
            assert not any(consistent(old, before, new, each, proof) for each in flips(after))
            assert not any(consistent(old, before, new, after, each) for each in changed(proof))


def test_proof_fails_for_any_other_index_or_older_size() -> None:
    for size in range(1, 33):
        for index in range(size):
            proof = path(index, 0, size)
            others = [other for other in range(-1, size + 2) if other != index]
            assert not any(
                included(LEAVES[index], other, size, proof, mth(0, size)) for other in others
            )
            old, proof = index + 1, subproof(index + 1, 0, size, True)
            others = [other for other in range(-1, size + 2) if other != old]
            assert not any(
                consistent(other, mth(0, old), size, mth(0, size), proof) for other in others
            )


def test_inclusion_path_alone_accepts_more_than_one_size() -> None:
    """Not a wish, but what RFC 6962 gives; `test_proof_file` shows that no file can use it."""
    proof, root = path(0, 0, 3), mth(0, 3)
    accepted = [size for size in range(1, 70) if included(LEAVES[0], 0, size, proof, root)]
    assert accepted == [3, 4]


def test_impossible_proof_requests_are_rejected_with_a_message() -> None:
    with pytest.raises(ProofError, match="shrank from 8 to 7"):
        consistency_proof(8, 7, subtree)
    with pytest.raises(ProofError, match="has no entry 7"):
        inclusion_proof(7, 7, subtree)
    with pytest.raises(ProofError, match="has 0 hashes, not 3"):
        verify_inclusion(LEAVES[0], 0, 8, [], mth(0, 8))
    # One byte moved from a node to its sibling would give the same bytes to hash.
    left, right = LEAVES[0] + LEAVES[1][:1], LEAVES[1][1:]
    with pytest.raises(ProofError, match="not 32 bytes"):
        verify_inclusion(left, 0, 2, [right], mth(0, 2))


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    try:
        verify_inclusion(leaf, index, size, proof, root)
    except ProofError:
        return False
    return True


def consistent(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    try:
        verify_consistency(old, old_root, new, new_root, proof)
    except ProofError:
        return False
    return True


def changed(proof: list[bytes]) -> list[list[bytes]]:
    """A bit flipped, a hash too many, too few, and two that changed places."""
    flipped = [
        [*proof[:at], each, *proof[at + 1 :]]
        for at in range(len(proof))
        for each in flips(proof[at])
    ]
    swapped = [
        [*proof[:at], proof[at + 1], proof[at], *proof[at + 2 :]] for at in range(len(proof) - 1)
    ]
    shorter = [proof[:-1], proof[1:]] if proof else []
    return [*flipped, *swapped, *shorter, [*proof, LEAVES[0]]]
