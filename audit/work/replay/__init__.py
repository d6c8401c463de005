"""What would break? Stored calls of a tool judged again, by the schemas of a draft.

`judgement` says what a schema finds in one event, `tally` sums that up; both are pure. `job` has
the worker read the log.
"""
