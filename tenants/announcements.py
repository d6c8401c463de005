"""Signals to the apps above. Imports no other module of ours: every process loads it."""

from django.dispatch import Signal

tenant_leaves = Signal()
"""Sent before the rows of a tenant are deleted, with `tenant` and `operator`.

Whoever keeps something of the tenant elsewhere destroys it, or raises an error: then nothing is
deleted, and the command can be repeated.
"""
