"""The secrets of a stream, encrypted for the place where they are stored."""

from uuid import UUID

from audit.models import Stream
from audit.stream.addressing import Address
from config.boxes import close_members, open_members


def secrets_of(stream: Stream) -> dict[str, str]:
    """The decrypted secrets of a stream. Raises BoxError."""
    return open_members(_place(stream.tenant_id, stream.id), stream.secret_box)


def boxed(tenant_id: UUID, stream_id: UUID, address: Address) -> bytes | None:
    """The secrets of an address, encrypted; None without one. Raises BoxError."""
    return close_members(_place(tenant_id, stream_id), address.secrets)


def _place(tenant_id: UUID, stream_id: UUID) -> bytes:
    return b"stream" + tenant_id.bytes + stream_id.bytes
