"""The API's responses about the ledger, as the API description shows them."""

from datetime import datetime
from typing import Literal

from tenants.api_reads import Answer, Page


class Checkpoint(Answer):
    """Signed size and root of the log at one moment."""

    origin: str
    """The log's name."""
    epoch: int
    """How often the log was restarted after a restore."""
    size: int
    root: str
    """SHA-256, base64."""
    signed_at: datetime
    note: str
    """The signed note (https://c2sp.org/tlog-checkpoint)."""


class CheckpointPage(Page[Checkpoint]):
    """A page of checkpoints, newest first."""

    OLD_NAME = "checkpoints"


class Witness(Answer):
    """A witness of the ledger or the time authority, and its state."""

    name: str
    key: str
    """Verifier key as in https://c2sp.org/signed-note, of the type 0x04; of the time authority its
    URL."""
    size: int | None
    """Entries of the largest checkpoint that it signed; null if it has signed none."""
    signed_at: datetime | None
    outcome: Literal["signed", "refused", "silent"] | None
    """Its last answer; null if it was not asked yet."""
    problem: str
    """Why it did not sign."""


class Ledger(Answer):
    """Status of the ledger."""

    origin: str
    entries: int
    """Entries in the log. Those of the last seconds are not signed yet."""
    signed: int
    """Entries in the newest checkpoint."""
    signed_at: datetime | None
    refusal: str | None
    """Why signing is refused; null if it is not."""
    witnesses: list[Witness]
    """Servers of others that sign the checkpoints. Without them, a proof shows consistency with
    what this server signed, not that the server shows everybody the same ledger."""
    witnesses_needed: int
    """How many of them must sign."""
    witnessed: int | None
    """Entries for which so many of them vouch; null if too few have signed."""
    time_authority: Witness | None
    """Who says at which time the ledger existed (RFC 3161); null if nobody is asked."""


class Key(Answer):
    """A public key that signs this log."""

    vkey: str
    """Verifier key as in https://c2sp.org/signed-note."""
    created_at: datetime
    signs_until: datetime | None
    """Null while the key is in use."""


class Keys(Page[Key]):
    """The public keys, the newest first."""

    OLD_NAME = "keys"


class Inclusion(Answer):
    """Proof that a signed log has an entry: the audit path of RFC 6962, from the leaf up."""

    index: int
    leaf: str
    """Leaf hash. All hashes are base64."""
    entry: str | None
    """The 78 bytes that the leaf hash is made of, base64; null if the event was erased."""
    hashes: list[str]
    checkpoint: Checkpoint
    salt: str | None
    """With the event's bytes it makes the commitment in the entry. Null without the scope
    `payloads`."""
    raw: str | None
    """The event as received, base64. Null without the scope `payloads`."""


class Consistency(Answer):
    """Proof (RFC 6962) that a log only grew between two checkpoints."""

    old: Checkpoint
    new: Checkpoint
    hashes: list[str]
