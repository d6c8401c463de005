"""The ledger as the API publishes it, for `tooltrail watch`, without a server."""

from uuid import UUID

from django.utils import timezone
from tooltrail.ledger import Tile

from audit.ledger import proofs
from tenants.scope import tenant_scope


class NothingPublishedError(Exception):
    """The API gives no answer that could be checked."""


class Published:
    """What the endpoints below `/api/v1/ledger/` answer with."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id

    def checkpoint(self) -> bytes:
        """The newest signed note."""
        with tenant_scope(self._tenant_id):
            newest = proofs.newest_checkpoint()
        if newest is None:
            raise NothingPublishedError("no checkpoint")
        return newest.note.encode()

    def tile(self, tile: Tile) -> bytes:
        """A tile's hashes."""
        with tenant_scope(self._tenant_id):
            try:
                hashes = proofs.tile(tile)
            except proofs.AlteredError as error:
                raise NothingPublishedError(str(error)) from error
        if hashes is None:
            raise NothingPublishedError(f"no {tile.path}")
        return hashes

    def public_keys(self) -> list[str]:
        """The public keys that the server names."""
        with tenant_scope(self._tenant_id):
            newest = proofs.newest_checkpoint()
            origin = "" if newest is None else newest.origin
            return [key.vkey for key in proofs.public_keys(origin, timezone.now())]
