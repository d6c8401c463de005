"""Evidence bundles: a range of a ledger in one zip that anyone can check without the server.

Pure: `BundleWriter` writes a bundle from the data it gets, `verify` checks one. docs/evidence.md
defines the format. Checking signatures needs the extra `verify`.
"""

from tooltrail.evidence.acknowledged import Acknowledged, read_acknowledged
from tooltrail.evidence.archive import Archive, UnreadableError
from tooltrail.evidence.bundle import BundleWriter
from tooltrail.evidence.layout import (
    FORMAT,
    EntryLine,
    Erased,
    Manifest,
    ProvedLine,
    RegisteredVersion,
    Tree,
)
from tooltrail.evidence.verdict import Check, Verdict
from tooltrail.evidence.verification import verify
from tooltrail.evidence.witnessed import Policy

__all__ = [
    "FORMAT",
    "Acknowledged",
    "Archive",
    "BundleWriter",
    "Check",
    "EntryLine",
    "Erased",
    "Manifest",
    "Policy",
    "ProvedLine",
    "RegisteredVersion",
    "Tree",
    "UnreadableError",
    "Verdict",
    "read_acknowledged",
    "verify",
]
