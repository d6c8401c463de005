"""The append-only log of payloads."""
