"""Rejected events."""
