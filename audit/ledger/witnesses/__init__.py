"""Witnesses of a ledger: servers of others that sign its checkpoints (docs/evidence.md)."""
