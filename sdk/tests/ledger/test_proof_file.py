"""The file that proves one entry offline: written, read, verified, and altered in every bit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.ledger import (
    Checkpoint,
    FormatError,
    LedgerError,
    ProofError,
    ProofFile,
    SignatureError,
    SigningKey,
    inclusion_proof,
    tree_root,
)

from sdk.tests.support.ledger_book import LEAVES, flips, subtree

LOG = SigningKey("audit.example/log/acme", bytes(range(32)))
KEYS = [LOG.verifier]

# The example of https://c2sp.org/tlog-proof up to its checkpoint; it is no proof of anything.
EXAMPLE = """\
c2sp.org/tlog-proof@v1
extra YWdlLXYxLjIuMS1kYXJ3aW4tYXJtNjQudGFyLmd6kYXJ3aW4tYXJ
index 73894
gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=
B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=
EKNzoDWG8LGC0Yp9o+sv3qllpMP9uHQ9B20KNL+Q1zs=
RoopEkOdqkYqMB4MJXrbt/hMjOxsVn0IrWjpz1ZMMes=
AHCioX9nLjsrse6YhjRRmk1WUEirVOLLRoOQ6vfO5vk=

"""


def proved(index: int, size: int, extra: bytes | None = None) -> ProofFile:
    checkpoint = Checkpoint(LOG.name, size, tree_root(size, subtree))
    proof = inclusion_proof(index, size, subtree)
    return ProofFile(index, tuple(proof), checkpoint.sign([LOG]), extra)


def test_published_example_proof_file_round_trips() -> None:
    file = ProofFile.parse(EXAMPLE.encode() + b"checkpoint")
    assert file.index == 73_894
    assert len(file.proof) == 5
    assert file.extra is not None
    assert file.extra.startswith(b"age-v1.2.1-darwin-arm64.tar.gz")
    assert file.checkpoint == b"checkpoint"
    assert file.to_bytes() == EXAMPLE.encode() + b"checkpoint"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 300])
@pytest.mark.parametrize("extra", [None, b"", b"what leads to the leaf"])
def test_written_file_proves_its_entry(size: int, extra: bytes | None) -> None:
    for index in {0, size // 2, size - 1}:
        file = proved(index, size, extra)
        assert ProofFile.parse(file.to_bytes()) == file

        checkpoint = file.verify(LEAVES[index], LOG.name, KEYS)

        assert (checkpoint.origin, checkpoint.size) == (LOG.name, size)


@pytest.mark.slow
@pytest.mark.parametrize(("index", "size"), [(0, 1), (0, 3), (5, 7)])
def test_flipped_bit_invalidates_a_proof_file(index: int, size: int) -> None:
    for changed in flips(proved(index, size).to_bytes()):
        with pytest.raises(LedgerError):
            ProofFile.parse(changed).verify(LEAVES[index], LOG.name, KEYS)


def test_flipped_bit_of_the_leaf_is_rejected() -> None:
    file = proved(5, 7)
    for changed in flips(LEAVES[5]):
        with pytest.raises(ProofError, match="does not match index 5 of this log of 7 entries"):
            file.verify(changed, LOG.name, KEYS)


def test_forged_size_with_the_same_path_fails_the_signature() -> None:
    file = proved(0, 3)
    forged = file.checkpoint.replace(b"\n3\n", b"\n4\n")
    assert forged != file.checkpoint
    with pytest.raises(SignatureError, match="is wrong"):
        ProofFile(0, file.proof, forged).verify(LEAVES[0], LOG.name, KEYS)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("proof@v1", "proof@v2", "the first line"),
        ("c2sp.org/tlog-proof@v1\n", "", "the first line"),
        ("index 73894\n", "", "the line 'index"),
        ("index 73894", "index 073894", "leading zeroes"),
        ("index 73894", "index", "the line 'index"),
        ("index 73894", f"index {1 << 63}", "below 2"),
        ("extra YW", "extra Y", "not base64"),
        ("gSKyXo", "gSKy", "not base64"),
        ("gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=", "AAAA", "3 bytes, not 32"),
        ("PlQ=\n", "PlR=\n", "not canonical base64"),
        ("PlQ=\n", "PlQ=\r\n", "not base64"),
        ("c2sp", "ć2sp", "ASCII"),
        ("\n\n", "\n", "an empty line"),
        ("\n\n", "\n" + "gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=\n" * 59 + "\n", "up to 63"),
    ],
)
def test_malformed_file_is_rejected_with_its_reason(old: str, new: str, why: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(FormatError, match=why):
        ProofFile.parse(EXAMPLE.replace(old, new).encode())


def test_oversized_file_is_rejected_before_parsing() -> None:
    with pytest.raises(FormatError, match="up to 2,000,000 bytes, not 2,000,001"):
        ProofFile.parse(b"x" * 2_000_001)


@given(st.binary(), st.binary())
def test_arbitrary_files_raise_ledger_errors_only(head: bytes, checkpoint: bytes) -> None:
    with pytest.raises(LedgerError):
        ProofFile.parse(head)
    with pytest.raises(LedgerError):
        ProofFile.parse(b"c2sp.org/tlog-proof@v1\nindex 0\n\n" + checkpoint).verify(
            LEAVES[0], LOG.name, KEYS
        )
