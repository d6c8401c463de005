"""Evidence bundles: a range of a ledger in one zip that anyone can check without the server.

Pure: `BundleWriter` makes a bundle of what it is given, `verify` checks one. The format is
docs/evidence.md. Checking signatures needs the extra `verify`.
"""

from tooltrail.evidence.archive import Archive, UnreadableError
from tooltrail.evidence.bundle import BundleWriter
from tooltrail.evidence.layout import (
    FORMAT,
    EntryLine,
    Erased,
    ErasureLine,
    Manifest,
    RegisteredVersion,
    Tree,
)
from tooltrail.evidence.verdict import Check, Verdict
from tooltrail.evidence.verification import verify

__all__ = [
    "FORMAT",
    "Archive",
    "BundleWriter",
    "Check",
    "EntryLine",
    "Erased",
    "ErasureLine",
    "Manifest",
    "RegisteredVersion",
    "Tree",
    "UnreadableError",
    "Verdict",
    "verify",
]
