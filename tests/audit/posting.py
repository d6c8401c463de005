"""Raw requests to `POST /api/v1/events`, for tests about the request itself."""

import json
from collections.abc import Iterable
from typing import Any

import uuid_utils.compat
from django.http import HttpResponse
from django.test import Client

NDJSON = "application/x-ndjson"


def lines(events: Iterable[dict[str, Any]]) -> bytes:
    """Events as a body."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def new_batch_id() -> str:
    """A batch id of now."""
    return str(uuid_utils.compat.uuid7())


def post(
    key: str, body: bytes, *, content_type: str = NDJSON, **headers: str | None
) -> HttpResponse:
    """Post a body with a fresh batch id. `headers` are given as `content_encoding="gzip"`."""
    given = {"authorization": f"Bearer {key}", "idempotency_key": new_batch_id(), **headers}
    return Client().post(  # type: ignore[return-value]  the test client's is one, too
        "/api/v1/events",
        data=body,
        content_type=content_type,
        headers={
            name.replace("_", "-"): value for name, value in given.items() if value is not None
        },
    )
