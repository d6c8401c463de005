"""Incidents: one act that holds calls, and makes the timeline of their traces for evidence.

`making` is the job: it finds the traces of a query's calls, sets a hold on each, and reads them in
the worker. `reading` gathers what happened in a trace and around it, `timeline` is the document,
`bundled` gives what an evidence bundle has of an incident.
"""
