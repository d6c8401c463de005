"""Definitions of tools as served: what is in force, what changed, and approvals."""
