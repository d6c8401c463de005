"""Traces: list and timeline."""
