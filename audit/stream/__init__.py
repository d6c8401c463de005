"""Streams: the tenant's record on its way to a SIEM, each record with what proves it."""
