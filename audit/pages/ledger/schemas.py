"""The API's responses about the ledger, as the API description shows them."""

from datetime import datetime

from tenants.api_reads import Answer, Page


class Checkpoint(Answer):
    """Size and root of the log at some moment, as they were signed."""

    origin: str
    """The log's name."""
    epoch: int
    """How often the log was begun anew, after a restore."""
    size: int
    root: str
    """SHA-256, base64."""
    signed_at: datetime
    note: str
    """The signed note (https://c2sp.org/tlog-checkpoint)."""


class CheckpointPage(Page):
    """A page of checkpoints, newest first."""

    checkpoints: list[Checkpoint]


class Ledger(Answer):
    """How the ledger stands."""

    origin: str
    entries: int
    """In the log; those that came in the last seconds are not signed yet."""
    signed: int
    """Of which so many are in the newest checkpoint."""
    signed_at: datetime | None
    refusal: str | None
    """Why nothing is signed; null: the signer signs."""
    witnesses: list[str]
    """Who else signs the checkpoints. Nobody, so far: a proof shows consistency with what this
    server signed, not that it shows everybody the same."""


class Key(Answer):
    """A public key that signs this log."""

    vkey: str
    """As https://c2sp.org/signed-note writes verifier keys."""
    created_at: datetime
    signs_until: datetime | None
    """Null: it is in use."""


class Keys(Answer):
    """The public keys, the newest first."""

    keys: list[Key]


class Inclusion(Answer):
    """That a signed log has an entry: RFC 6962's audit path, from the leaf's sibling up."""

    index: int
    leaf: str
    """Its leaf hash, base64, as are all hashes."""
    entry: str | None
    """The 78 bytes the leaf is made of, base64: null where the event was erased."""
    hashes: list[str]
    checkpoint: Checkpoint
    salt: str | None
    """With the event's bytes it makes the commitment in the entry: for keys with the scope
    `payloads`."""
    raw: str | None
    """The event as it was received, base64; likewise."""


class Consistency(Answer):
    """That a log only grew between two checkpoints: RFC 6962's proof."""

    old: Checkpoint
    new: Checkpoint
    hashes: list[str]
