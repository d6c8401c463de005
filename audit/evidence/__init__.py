"""Evidence bundles: a range of a tenant's ledger as one file that anyone can verify.

`tooltrail.evidence` has the format, its writer and its verifier, which need no server. This package
collects the contents: `entries` rebuilds entries from the log, `ledger_range` finds the entries of
a range of time, `bundling` writes everything to one stream.
"""
