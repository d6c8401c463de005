"""Makes records of a stream: what an entry says, in a SIEM's format, with what proves it.

A record's member `tooltrail` has the entry's place, leaf and proof, and a signature of the server.
One signature is over up to 16 records, the leaves of a small tree: one for each record would cost
40 µs, as much as all the rest. `tooltrail.evidence.record` checks it; docs/siem.md describes it.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from tooltrail.evidence.record import GROUP, SCHEMA, signed_text
from tooltrail.ledger import HASH_LENGTH, leaf_of

from audit.events.instants import microseconds
from audit.ledger.cose import key_id
from audit.ledger.recompute import Remade, StoredBatch, remake
from audit.ledger.statements import signing_key
from audit.log.payload import LogPayloadError
from audit.models import LedgerCheckpoint
from audit.stream import ecs, ocsf
from audit.stream.facts import fact_of, severity_of, without_payload
from audit.stream.place import Place, Source
from audit.stream.proving import Proofs, levels_of, proofs_of
from config.version import VERSION
from tenants.models import Tenant

_DOCUMENTS: Final = {"ocsf": ocsf.document, "ecs": ecs.document}
FORMATS: Final[Mapping[str, str]] = {
    "ocsf": "OCSF 1.8 (API Activity, with the profile ai_operation)",
    "ecs": "ECS (Elastic Common Schema)",
}
_SYSLOG: Final = {"informational": 6, "low": 5, "medium": 4, "high": 3}
# Sorted, as the signature is over JCS (RFC 8785).
_encode = msgspec.json.Encoder(order="deterministic").encode
_MEMBER = b'"tooltrail":{'


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record: JSON in UTF-8, on one line."""

    index: int
    received_us: int
    severity: int
    """As syslog has it (RFC 5424): 3 is an error, 6 informational."""
    body: bytes


class RecordMaker:
    """Makes the records of one stream that a checkpoint covers. Needs the tenant's scope."""

    def __init__(
        self,
        tenant: Tenant,
        of: str,
        form: str,
        checkpoint: LedgerCheckpoint,
        *,
        has_payloads: bool = False,
        has_proofs: bool = True,
    ) -> None:
        """`has_proofs`: whether each record has its whole proof, or names the checkpoint only.

        Announces the tenant's key if it is new. Raises BoxError.
        """
        self._document = _DOCUMENTS[form]
        self._form = form
        self._has_payloads = has_payloads
        self._source = Source(
            str(tenant.id),
            tenant.slug,
            checkpoint.origin,
            settings.LEDGER_HOST,
            VERSION,
            of,
        )
        self._end = checkpoint.size
        self._proofs = Proofs(tenant.id, checkpoint) if has_proofs else None
        named: dict[str, Any] = {
            "size": checkpoint.size,
            "root": b64encode(bytes(checkpoint.root)).decode(),
        }
        if has_proofs:
            named["note"] = checkpoint.note
        self._checkpoint = msgspec.Raw(_encode(named))
        key = signing_key()
        self._key_id = key_id(key.verifier.public).encode()
        self._sign = Ed25519PrivateKey.from_private_bytes(key.private).sign

    def records(
        self, batches: Iterable[StoredBatch], index: int, limit: int | None = None
    ) -> list[Record]:
        """The records of neighbouring batches from an index on, up to the checkpoint or a limit."""
        chosen = list(islice(self._entries(batches, index), limit))
        if self._proofs is not None:
            self._proofs.read_ahead(place.index for place, *_ in chosen)
        unsigned = [self._record(*each) for each in chosen]
        return [
            record
            for begin in range(0, len(unsigned), GROUP)
            for record in self._signed(unsigned[begin : begin + GROUP])
        ]

    def _entries(
        self, batches: Iterable[StoredBatch], index: int
    ) -> Iterator[tuple[Place, Remade, bool]]:
        """The entries that become records, with their places, and whether they are the server's."""
        for batch in batches:
            received_us = microseconds(batch.received_at)
            for at, one in enumerate(_remade(batch), batch.first_index):
                if index <= at < self._end:
                    yield Place(self._source, at, received_us), one, batch.is_own

    def _signed(self, group: Sequence[Record]) -> Iterator[Record]:
        """The records with one signature over the tree of them."""
        levels = levels_of([leaf_of(record.body) for record in group])
        size = len(group)
        signature = b64encode(self._sign(signed_text(size, levels[-1][0])))
        for at, (record, proof) in enumerate(zip(group, proofs_of(levels), strict=True)):
            # A quote inside a text is escaped, so this is the member, and there is one.
            before, member, after = record.body.partition(_MEMBER)
            body = b'%b%b"signed":{"at":%d,"key":"%b","of":%d,"proof":%b,"signature":"%b"},%b' % (
                before,
                member,
                at,
                self._key_id,
                size,
                proof,
                signature,
                after,
            )
            yield Record(record.index, record.received_us, record.severity, body)

    def _record(self, place: Place, one: Remade, is_own: bool) -> Record:
        fact = fact_of(one, place.received_us, is_own=is_own)
        has_raw = self._has_payloads and one.entry is not None
        if not self._has_payloads:
            without_payload(fact)
        record = self._document(fact, place)
        own: dict[str, Any] = {
            "schema": SCHEMA,
            "index": place.index,
            "origin": self._source.origin,
            "kind": fact.kind,
            "state": fact.state,
            "leaf": one.leaf,  # bytes are encoded as base64
            "checkpoint": self._checkpoint,
        }
        if one.entry is not None:
            own["entry"] = one.entry.to_bytes()
        if self._proofs is not None:
            proof = self._proofs.proof(place.index, one.leaf)
            if proof is not None:
                own["proof"] = msgspec.Raw(proof)
        if has_raw:
            own["salt"] = one.salt
            raw = one.raw.decode()
            if self._form == "ocsf":
                record["raw_data"] = raw
            else:
                record["event"]["original"] = raw
        record["tooltrail"] = own
        severity = _SYSLOG[severity_of(fact)]
        return Record(place.index, place.received_us, severity, _encode(record))


def _remade(batch: StoredBatch) -> list[Remade]:
    try:
        return remake(batch)
    except LogPayloadError:  # its leaves are in the ledger all the same
        whole = range(0, len(batch.leaves) - len(batch.leaves) % HASH_LENGTH, HASH_LENGTH)
        leaves = [batch.leaves[at : at + HASH_LENGTH] for at in whole]
        return [Remade(None, leaf, b"", b"\0") for leaf in leaves]
