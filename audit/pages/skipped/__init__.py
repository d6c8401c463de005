"""Spans that arrived and became no call."""
