"""The last signed checkpoint of each tenant's log, in one file per tenant, outside the database.

The file is written before the checkpoint is published, and contains the whole note. If the process
is killed in between, the next run publishes this note and never another one of the same size.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.conf import settings
from tooltrail.ledger import EMPTY_ROOT, Checkpoint

from config import private_files

_JOINED = "joined.json"
REMEMBERED = 128
"""Earlier checkpoints that the state keeps: 10 KB. A new epoch compares the log with them."""


@dataclass(frozen=True, slots=True)
class SignerState:
    """The last checkpoint of a log. `note` is '' before the first checkpoint of an epoch."""

    epoch: int
    origin: str
    size: int = 0
    root: bytes = EMPTY_ROOT
    note: str = ""
    receipts: tuple[bytes, ...] = ()
    """The root signed for COSE by each key; none if an earlier release signed it."""
    signed_at: datetime | None = None
    earlier: tuple[tuple[int, bytes], ...] = ()
    """Sizes and roots of earlier checkpoints, ascending: the last ones, and some of the oldest."""

    @property
    def remembered(self) -> tuple[tuple[int, bytes], ...]:
        """Sizes and roots of all remembered checkpoints, ascending."""
        return (*self.earlier, (self.size, self.root)) if self.note else self.earlier

    def followed_by(
        self,
        checkpoint: Checkpoint,
        note: str,
        receipts: tuple[bytes, ...],
        signed_at: datetime,
    ) -> "SignerState":
        """The state after a later checkpoint of the same epoch."""
        return replace(
            self,
            size=checkpoint.size,
            root=checkpoint.root,
            note=note,
            receipts=receipts,
            signed_at=signed_at,
            earlier=thinned(self.remembered),
        )


def thinned(points: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, bytes], ...]:
    """At most `REMEMBERED` of these: of more, every second one of the older half is removed."""
    while len(points) > REMEMBERED:
        half = len(points) // 2
        points = points[:half:2] + points[half:]
    return points


def origin_of(tenant_id: UUID, epoch: int) -> str:
    """The name of a tenant's log. A log of a later epoch has another name, with its number."""
    name = f"{settings.LEDGER_HOST}/log/{tenant_id}"
    return f"{name}/{epoch}" if epoch else name


def load(tenant_id: UUID) -> SignerState | None:
    """The signer's state of a tenant's log; None before the first one. Raises PrivateFileError."""
    path = private_files.folder() / f"{tenant_id}.json"
    data = private_files.read(path)
    if data is None:
        return None
    try:
        document = json.loads(data)
        signed_at = document["signed_at"]
        return SignerState(
            epoch=int(document["epoch"]),
            origin=str(document["origin"]),
            size=int(document["size"]),
            root=bytes.fromhex(document["root"]),
            note=str(document["note"]),
            receipts=tuple(map(bytes.fromhex, document.get("receipts", []))),
            earlier=tuple(
                (int(size), bytes.fromhex(root)) for size, root in document.get("earlier", [])
            ),
            signed_at=None if signed_at is None else datetime.fromisoformat(signed_at),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise private_files.PrivateFileError(f"{path} is not a signer's state") from error


def save(tenant_id: UUID, state: SignerState) -> None:
    """Replace the state. It survives a power cut once this returns. Raises PrivateFileError."""
    document = {
        "epoch": state.epoch,
        "origin": state.origin,
        "size": state.size,
        "root": state.root.hex(),
        "note": state.note,
        "receipts": [receipt.hex() for receipt in state.receipts],
        "earlier": [[size, root.hex()] for size, root in state.earlier],
        "signed_at": state.signed_at and state.signed_at.isoformat(),
    }
    path = private_files.folder() / f"{tenant_id}.json"
    private_files.write(path, json.dumps(document, indent=1).encode())


def join(now: datetime) -> None:
    """Let this machine continue ledgers that it does not remember. Raises PrivateFileError."""
    document = {"joined_at": now.isoformat()}
    private_files.write(private_files.folder() / _JOINED, json.dumps(document).encode())


def has_joined() -> bool:
    """Whether this machine may continue ledgers that it does not remember (`join`)."""
    return private_files.read(private_files.folder() / _JOINED) is not None
