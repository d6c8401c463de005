"""The ledger: checkpoints, proofs, checks."""
