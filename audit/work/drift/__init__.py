"""What tools really take and return, held against what is registered.

`declared` reads a schema, `shape` sums up stored values, `findings` says where the two differ, and
`widened` what a schema would be that allows for it; all pure. `job` has the worker read the log,
`callers` says who calls which version.
"""
