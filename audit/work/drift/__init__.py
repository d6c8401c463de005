"""Drift: compares the arguments and outputs of stored calls with the registered schemas.

`declared` reads a schema, `shape` sums up stored values, `findings` lists where the two differ, and
`widened` proposes a schema that allows for the differences. These are pure. `job` reads the log in
the worker.
"""
