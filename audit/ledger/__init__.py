"""The server's side of the ledger: entries of its own, tiles, signed checkpoints, proofs.

`tooltrail.ledger` defines the format and verifies it; it needs no server. This package maintains
the ledger: `folding` builds tiles from the leaves in the log. `signer` signs their root and refuses
a log that lost or changed entries. `proofs` reads proofs from tiles. `checks` reads everything
again.

The private key (`keys`) and the last signed checkpoint (`signer_state`) are in a folder of the
worker, not in the database. Somebody with write access to only one of the two cannot make them
agree. The web server reads neither.
"""
