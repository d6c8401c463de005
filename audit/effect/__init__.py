"""What a version changed: calls that failed, broke their schema, took long; before it and after.

`statistics` knows numbers alone, `comparison` what they say of two versions' calls; both are pure.
The calls are counted by `audit.effect.queries`.
"""
