"""Auditors' samples: begun, drawn, worked, signed and exported."""
