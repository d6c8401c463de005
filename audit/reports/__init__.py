"""Reports of a tenant over a day, a week, a month or any range.

`figures` runs the queries of the pages. `stored` stores their results with the size of the ledger
at that moment. `layout` has the parts of a report; the page and `pdf` show them, `export` writes
files. `schedule` makes reports automatically in the worker.
"""
