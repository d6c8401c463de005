"""Auditors' samples of calls: their population, the draw, the conclusions and the sign-offs.

The rules, which anybody can repeat, are the SDK's (`tooltrail.evidence.sample`). `collecting` lists
a population in the worker, `drawing` draws, `working` keeps conclusions and sign-offs, `bundled`
gives what an evidence bundle has of a sample. docs/sampling.md is for auditors.
"""
