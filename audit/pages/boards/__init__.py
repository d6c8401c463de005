"""Boards: pages that people make of charts and lists of calls."""
