"""The clause report: a stored report beside the clauses that ask for records, clause by clause.

`texts` are the clauses and what a record of tool calls can say about each, and what not. `record`
gathers the figures that no other part of a report has. `figures` makes single figures of a stored
report, `answers` puts them beside the clauses, `files` writes them.
"""
