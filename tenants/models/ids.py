"""Ids of rows."""

import uuid

import uuid_utils.compat


def new_id() -> uuid.UUID:
    """A UUIDv7: unique and ordered by time, which keeps the newest rows together."""
    return uuid_utils.compat.uuid7()
