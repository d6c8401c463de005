"""Calls: list, one call, open calls, saved views, payload search."""
