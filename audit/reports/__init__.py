"""Reports of a tenant over a day, a week, a month or any range.

`figures` asks the pages' own queries, `stored` keeps what they answered with the size of the
ledger at that moment, `layout` says how a report reads; the page, `pdf` and `export` show it.
`schedule` is what the worker makes by itself.
"""
