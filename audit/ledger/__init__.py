"""The server's side of the ledger: entries of its own, tiles, signed checkpoints, proofs.

How it is written and checked is `tooltrail.ledger`'s, which needs no server. Here is what keeps
it: `folding` makes tiles of the leaves in the log, `signer` signs what they add up to and refuses
a log that lost or changed something, `proofs` answers out of tiles, `checks` reads it all again.

The private key (`keys`) and what was signed last (`signer_state`) lie in a folder of the worker's,
not in the database: who can write the one cannot make it agree with the other. The web server
reads neither.
"""
