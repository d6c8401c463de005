"""An entry as a signed statement for readers of COSE (`audit.ledger.cose`). Needs the scope.

Each tenant has a key of its own for statements, because only workers have the ledger's key. It is
derived from the first of the keys that encrypt (`config.boxes`), so that all servers have the same
one and none is stored. Its public half is an action, hence an entry of the ledger, before it signs
for the first time. Another first key, another key for statements: the actions name all of them.
"""

from uuid import UUID

from django.conf import settings
from tooltrail.ledger import LedgerError, SigningKey, leaf_of
from tooltrail.ledger.lines import from_base64, to_base64

from audit.ledger import cose
from audit.ledger.entry_view import EntryView
from audit.ledger.proofs import AlteredError, Inclusion, UnsignedError
from audit.models import LedgerKey
from config.boxes import derive
from tenants.actions import THE_SERVER, record_once
from tenants.models import Action
from tenants.scope import current_tenant_id

KEY_VERB = "ledger.statement_key"
"""The action that announces a key; its subject is the public key, base64."""


class ErasedError(Exception):
    """The event was erased, and with it the bytes that the leaf is made of."""


def entry_statement(proof: Inclusion, view: EntryView) -> bytes:
    """The statement about a proved entry, with a receipt by each key that signed its checkpoint.

    Announces the tenant's key if it is new. Raises ErasedError, UnsignedError if the checkpoint
    was signed by a release without receipts, AlteredError, BoxError.
    """
    if view.fault:
        raise AlteredError(f"Entry {proof.index:,} was altered: {view.fault}.")
    if view.entry is None:
        raise ErasedError(f"The event of entry {proof.index:,} was erased.")
    entry = view.entry.to_bytes()
    if leaf_of(entry) != proof.leaf:
        raise AlteredError(f"Entry {proof.index:,} differs from what was signed.")
    receipts = _receipts(proof)
    origin = proof.checkpoint.origin
    return cose.statement(signing_key(), issuer(), origin, entry, receipts)


def issuer() -> str:
    """Who makes the tenant's statements, as they say it."""
    return f"{settings.LEDGER_HOST}/tenant/{current_tenant_id()}"


def key_set() -> list[dict[str, str]]:
    """The public keys of receipts and of statements as JWKs, those in use first.

    Announces the tenant's key if it is new, so that the set is complete whenever somebody keeps
    it. Raises BoxError.
    """
    signing_key()
    logs = LedgerKey.objects.order_by("-created_at", "public_key")
    announced = Action.objects.filter(tenant_id=current_tenant_id(), verb=KEY_VERB)
    statements = announced.order_by("-at", "id").values_list("subject", flat=True)
    return [
        *(cose.jwk(bytes(key.public_key), "receipts") for key in logs),
        *(cose.jwk(from_base64(key, "a key"), "statements") for key in statements),
    ]


def _receipts(proof: Inclusion) -> list[bytes]:
    checkpoint = proof.checkpoint
    if not checkpoint.receipts:
        raise UnsignedError(
            f"The checkpoint of {checkpoint.size:,} entries was signed by a release without"
            " receipts. The next one has them, within a minute of the next entry."
        )
    public_keys = [bytes(key.public_key) for key in LedgerKey.objects.all()]
    receipts = []
    for signed in map(bytes, checkpoint.receipts):
        try:
            cose.check_root(signed, checkpoint.origin, bytes(checkpoint.root), public_keys)
        except LedgerError as error:
            raise AlteredError(f"A receipt differs from what was signed: {error}.") from error
        receipts.append(cose.with_proof(signed, checkpoint.size, proof.index, proof.hashes))
    return receipts


def signing_key() -> SigningKey:
    """The tenant's key for statements. Announces it if it is new. Raises BoxError."""
    tenant_id = current_tenant_id()
    key = SigningKey(issuer(), derive(_purpose(tenant_id)))
    record_once(tenant_id, THE_SERVER, KEY_VERB, to_base64(key.verifier.public))
    return key


def _purpose(tenant_id: UUID) -> bytes:
    return b"statements of the ledger" + tenant_id.bytes
