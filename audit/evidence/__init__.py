"""Evidence bundles: a range of a tenant's ledger as one file that anyone can check.

The format, its writer and its verifier are `tooltrail.evidence`'s, which need no server. Here is
what goes in: `entries` reads the log as entries again, `stretch` says which of them a range of time
is, `bundling` puts all of it in one stream.
"""
