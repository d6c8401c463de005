"""Latency and tokens."""
