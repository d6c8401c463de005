"""The ledger: events as leaves of a Merkle log, and proofs that no event was altered.

Pure: it contains everything needed to check a proof without a server. Only signing and checking
signatures need more than the SDK itself: the extra `verify`.
"""

from tooltrail.ledger.checkpoint import Checkpoint, open_checkpoint
from tooltrail.ledger.errors import (
    FormatError,
    LedgerError,
    ProofError,
    SignatureError,
    UnknownSignerError,
)
from tooltrail.ledger.keys import Signer, SigningKey, VerifierKey
from tooltrail.ledger.leaf import (
    NO_INVOCATION,
    SALT_LENGTH,
    VERSION,
    Entry,
    Kind,
    commit_of,
    leaf_of,
)
from tooltrail.ledger.lines import HASH_LENGTH
from tooltrail.ledger.note import OpenedNote, Signature, open_note, parse_note, sign_note
from tooltrail.ledger.proof_file import ProofFile
from tooltrail.ledger.tiles import (
    Tile,
    subtrees_in,
    tiles_between,
    tiles_of_consistency,
    tiles_of_inclusion,
    tiles_of_root,
    tiles_of_subtrees,
)
from tooltrail.ledger.tree import (
    EMPTY_ROOT,
    Subtree,
    consistency_proof,
    inclusion_proof,
    node_of,
    root_of,
    tree_root,
    verify_consistency,
    verify_inclusion,
)

__all__ = [
    "EMPTY_ROOT",
    "HASH_LENGTH",
    "NO_INVOCATION",
    "SALT_LENGTH",
    "VERSION",
    "Checkpoint",
    "Entry",
    "FormatError",
    "Kind",
    "LedgerError",
    "OpenedNote",
    "ProofError",
    "ProofFile",
    "Signature",
    "SignatureError",
    "Signer",
    "SigningKey",
    "Subtree",
    "Tile",
    "UnknownSignerError",
    "VerifierKey",
    "commit_of",
    "consistency_proof",
    "inclusion_proof",
    "leaf_of",
    "node_of",
    "open_checkpoint",
    "open_note",
    "parse_note",
    "root_of",
    "sign_note",
    "subtrees_in",
    "tiles_between",
    "tiles_of_consistency",
    "tiles_of_inclusion",
    "tiles_of_root",
    "tiles_of_subtrees",
    "tree_root",
    "verify_consistency",
    "verify_inclusion",
]
