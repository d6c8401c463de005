"""The secrets of a stream, encrypted for the place where they are stored."""

import json
from uuid import UUID

from audit.models import Stream
from audit.stream.addressing import Address
from config.boxes import close, open_box


def secrets_of(stream: Stream) -> dict[str, str]:
    """The decrypted secrets of a stream. Raises BoxError."""
    if stream.secret_box is None:
        return {}
    text = open_box(_place(stream.tenant_id, stream.id), bytes(stream.secret_box))
    secrets: dict[str, str] = json.loads(text)
    return secrets


def boxed(tenant_id: UUID, stream_id: UUID, address: Address) -> bytes | None:
    """The secrets of an address, encrypted; None without one. Raises BoxError."""
    if not address.secrets:
        return None
    return close(_place(tenant_id, stream_id), json.dumps(dict(address.secrets)).encode())


def _place(tenant_id: UUID, stream_id: UUID) -> bytes:
    return b"stream" + tenant_id.bytes + stream_id.bytes
