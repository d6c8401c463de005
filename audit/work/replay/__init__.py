"""Replay: validates stored calls against a draft's schemas, to show what would break.

`audit.events.judgement` validates one event, `tally` sums up the results; both are pure. `job`
reads the log in the worker.
"""
