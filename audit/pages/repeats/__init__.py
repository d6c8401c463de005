"""Repeated calls."""
