"""Incidents: one form that holds calls and makes their timeline, and its evidence."""
