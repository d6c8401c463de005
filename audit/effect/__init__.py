"""The effect of a version: compares failures, schema violations and latency before and after it.

`statistics` has tests on plain numbers, `comparison` applies them to the calls of two versions;
both are pure. `queries` counts the calls, `shown` prepares the page. `sides` compares the calls of
any two queries by the same tests.
"""
