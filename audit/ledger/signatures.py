"""Check the tables of checkpoints and keys against what the log announces and the signer holds.

Whoever can write to the database can put a key of their own into the table of keys, and a
checkpoint signed with it into the other. So no key counts because a table has it: the first keys
are in the baseline, later ones in entries of kind key, and this machine's are in its file. Which
epoch is the current one follows from entries, too.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from uuid import UUID

import msgspec
from django.utils import timezone
from tooltrail.ledger import FormatError, Kind, LedgerError, VerifierKey, open_checkpoint
from tooltrail.ledger.lines import from_base64, to_base64

from audit.ledger import keys, signer_state
from audit.ledger.own_entries import own_entries
from audit.ledger.signer_state import origin_of
from audit.ledger.status import ledger_status
from audit.models import LedgerCheckpoint, LedgerKey
from config.private_files import PrivateFileError

_PUBLISHED_WITHIN = timedelta(minutes=1)
_LISTED = 20


class _Key(msgspec.Struct):
    public_key: str


class _KeyEntry(_Key):
    replaces: list[_Key] = []


class _EpochEntry(msgspec.Struct):
    epoch: int
    proved: int = 0


class _Baseline(msgspec.Struct):
    ledger_keys: list[str] = []


@dataclass
class Announced:
    """The public keys and the epoch that the log and this machine know."""

    public_keys: set[bytes] = field(default_factory=set)
    epoch: int = 0
    newest_key: bytes | None = None
    """The public key that the last entry of kind key announces."""
    proved: dict[int, int] = field(default_factory=dict)
    """With how many signed entries of before an epoch began, by the epoch's first entry."""

    def still_signed(self, epoch: int) -> float:
        """Up to which size checkpoints of an epoch have roots of the log as it is now."""
        return min((size for begun, size in self.proved.items() if begun > epoch), default=inf)


def announced(tenant_id: UUID) -> Announced:
    """Read the entries about keys and epochs, and this machine's file. Needs the scope.

    In a log without a baseline the table's keys are believed.
    """
    known, has_baseline = Announced(), False
    for entry in own_entries(tenant_id, {Kind.KEY, Kind.EPOCH, Kind.BASELINE}):
        with suppress(msgspec.MsgspecError, FormatError):
            if entry.kind is Kind.KEY:
                key_entry = msgspec.json.decode(entry.raw, type=_KeyEntry)
                known.newest_key = from_base64(key_entry.public_key, "a key")
                for each in (key_entry, *key_entry.replaces):
                    known.public_keys.add(from_base64(each.public_key, "a key"))
            elif entry.kind is Kind.EPOCH:
                begun = msgspec.json.decode(entry.raw, type=_EpochEntry)
                known.epoch = max(known.epoch, begun.epoch)
                known.proved.setdefault(begun.epoch, begun.proved)
            elif listed := msgspec.json.decode(entry.raw, type=_Baseline).ledger_keys:
                known.public_keys |= {from_base64(each, "a key") for each in listed}
                has_baseline = True
    with suppress(PrivateFileError):
        known.public_keys |= {key.public() for key in keys.load()}
    if not has_baseline:
        known.public_keys |= {bytes(row.public_key) for row in LedgerKey.objects.all()}
    return known


def disagreements(tenant_id: UUID, known: Announced) -> Iterator[str]:
    """One message for each key, epoch or checkpoint in a table that differs. Needs the scope."""
    for row in LedgerKey.objects.order_by("created_at"):
        if bytes(row.public_key) not in known.public_keys:
            key = to_base64(bytes(row.public_key))
            yield f"the public key {key} is in the database, and no entry announces it"
    yield from _strange_entries(tenant_id, known)
    of_tenant = LedgerCheckpoint.objects.for_tenant(tenant_id)
    for one in of_tenant.filter(epoch__gt=known.epoch).order_by("epoch", "size")[:_LISTED]:
        yield f"the checkpoint of {one.size:,} entries is of epoch {one.epoch}, which never began"
    status = ledger_status(tenant_id)
    if status.refusal is not None:
        yield f"the signer refuses to sign: {status.refusal}"
    state = None
    with suppress(PrivateFileError):
        state = signer_state.load(tenant_id)
    if state is None or not state.note:
        return
    newest = of_tenant.order_by("-epoch", "-size").first()
    there = None if newest is None else (newest.epoch, newest.size, bytes(newest.root))
    if there is not None and there[:2] > (state.epoch, state.size):
        return  # another machine signed it, or nobody: checks verify each note
    is_fresh = state.signed_at and timezone.now() - state.signed_at < _PUBLISHED_WITHIN
    if there != (state.epoch, state.size, state.root) and not is_fresh:
        size = 0 if newest is None else newest.size
        yield (
            f"the newest checkpoint in the database has {size:,} entries; the signer's last one is"
            f" another, of {state.size:,}"
        )


def _strange_entries(tenant_id: UUID, known: Announced) -> Iterator[str]:
    """Entries about keys and epochs that the signer did not make: anybody with SQL can append some.

    On a machine that does not sign there is nothing to compare them with.
    """
    held: set[bytes] = set()
    state = None
    with suppress(PrivateFileError):
        held = {key.public() for key in keys.load()}
        state = signer_state.load(tenant_id)
    if held and known.newest_key is not None and known.newest_key not in held:
        key = to_base64(known.newest_key)
        yield f"an entry announces the public key {key}, and the signer does not have it"
    if state is not None and known.epoch > max(state.epoch, _signed_epoch(tenant_id, held)):
        yield f"an entry begins epoch {known.epoch}, and the signer is in epoch {state.epoch}"


def _signed_epoch(tenant_id: UUID, held: set[bytes]) -> int:
    """The epoch of the newest checkpoint, if this machine's keys signed it; else 0.

    Another machine with these keys may have begun it.
    """
    of_tenant = LedgerCheckpoint.objects.for_tenant(tenant_id)
    newest = of_tenant.order_by("-epoch", "-size").first()
    if newest is None:
        return 0
    origin = origin_of(tenant_id, newest.epoch)
    with suppress(LedgerError):
        open_checkpoint(newest.note.encode(), origin, [VerifierKey(origin, key) for key in held])
        return newest.epoch
    return 0
