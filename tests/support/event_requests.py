"""Raw requests to `POST /api/v1/events`, for tests about the request itself."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import uuid_utils.compat
from django.test import Client

NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Answer:
    """The response. Names of `headers` are case-insensitive."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is not JSON."""
        return json.loads(self.content)


def lines(events: Iterable[dict[str, Any]]) -> bytes:
    """Events as a body."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def new_batch_id() -> str:
    """A batch id made now."""
    return str(uuid_utils.compat.uuid7())


def post(key: str, body: bytes, *, content_type: str = NDJSON, **headers: str | None) -> Answer:
    """Post a body with a fresh batch id. `headers` are given as `content_encoding="gzip"`."""
    given = {"authorization": f"Bearer {key}", "idempotency_key": new_batch_id(), **headers}
    answer = Client().post(
        "/api/v1/events",
        data=body,
        content_type=content_type,
        headers={
            name.replace("_", "-"): value for name, value in given.items() if value is not None
        },
    )
    return Answer(answer.status_code, answer.headers, answer.content)
