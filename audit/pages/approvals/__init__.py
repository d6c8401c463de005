"""Approvals of calls."""
