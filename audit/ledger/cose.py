"""Entries as COSE: signed statements (RFC 9052) with receipts (RFC 9942). Pure, and experimental.

A statement's payload is the entry. A receipt's payload is the root of the ledger and is left out:
who verifies computes it from SHA-256(0x00 ‖ entry) and the inclusion proof. The proof is not
signed, so the signer signs once for each checkpoint, and the receipt of every entry below it is
this signature with the proof put in.

Everything is encoded deterministically: the same checkpoint gives the same bytes. The signer's key
signs notes, too. None can be taken for the other: a note is UTF-8, and what COSE signs begins with
0x84, which no UTF-8 text does.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

import cbor2
from tooltrail.ledger import FormatError, SignatureError, Signer
from tooltrail.ledger.keys import check_signature

_PROFILE = 1
STATEMENT_TYPE = f"application/x.tooltrail.statement+cose;profile={_PROFILE}"
RECEIPT_TYPE = f"application/x.tooltrail.receipt+cose;profile={_PROFILE}"
ENTRY_TYPE = "application/x.tooltrail.ledger-entry;version=1"
"""The payload of a statement: the 78 bytes of `tooltrail.ledger.Entry`."""

# IANA, "COSE Header Parameters" and "CBOR Web Token (CWT) Claims".
_ALGORITHM, _CONTENT_TYPE, _KEY_ID, _CLAIMS, _TYPE = 1, 3, 4, 15, 16
_RECEIPTS, _TREE, _PROOFS = 394, 395, 396
_ISSUER, _SUBJECT, _ISSUED_AT = 1, 2, 6
_EDDSA = -8
_RFC9162_SHA256 = 1
_INCLUSION = -1
_SIGN1 = 18


def key_id(public: bytes) -> str:
    """The name of an Ed25519 key: its JWK thumbprint (RFC 7638). COSE has it as UTF-8."""
    members = json.dumps(_members(public), separators=(",", ":"), sort_keys=True)
    return _base64url(sha256(members.encode()).digest())


def jwk(public: bytes, signs: Literal["receipts", "statements"]) -> dict[str, str]:
    """An Ed25519 key as a JWK (RFC 8037), with a member of our own: what it signs."""
    return {
        **_members(public),
        "alg": "EdDSA",
        "use": "sig",
        "kid": key_id(public),
        "signs": signs,
    }


def sign_root(signer: Signer, root: bytes, signed_at: datetime) -> bytes:
    """A receipt without a proof: what the log's key signs for a checkpoint. Raises as the signer.

    The signer's name is the log's.
    """
    claims = {_ISSUER: signer.name, _SUBJECT: signer.name, _ISSUED_AT: int(signed_at.timestamp())}
    protected = {
        _ALGORITHM: _EDDSA,
        _KEY_ID: key_id(signer.verifier.public).encode(),
        _CLAIMS: claims,
        _TYPE: RECEIPT_TYPE,
        _TREE: _RFC9162_SHA256,
    }
    headers = _encoded(protected)
    return _sign1(headers, {}, None, signer.sign(_signed_bytes(headers, root)))


def check_root(receipt: bytes, origin: str, root: bytes, public_keys: Collection[bytes]) -> None:
    """Check that one of these keys signed this root in the name of a log.

    Raises FormatError if it is no receipt of `sign_root`, SignatureError.
    """
    headers, signature = _parts(receipt)
    try:
        protected = cbor2.loads(headers)
        named, claims = protected[_KEY_ID], protected[_CLAIMS]
        fixed = [protected[each] for each in (_ALGORITHM, _TREE)]
        issuer = claims[_ISSUER]
    except (cbor2.CBORDecodeError, LookupError, TypeError) as error:
        raise FormatError("the header of a receipt is not what the signer writes") from error
    if fixed != [_EDDSA, _RFC9162_SHA256] or issuer != origin:
        raise FormatError("a receipt is of another log or of another kind")
    for public in public_keys:
        if key_id(public).encode() == named:
            return check_signature(origin, public, _signed_bytes(headers, root), signature)
    raise SignatureError("a receipt is signed with an unknown key")


def with_proof(receipt: bytes, size: int, index: int, hashes: Sequence[bytes]) -> bytes:
    """The receipt of one entry: the signer's signature, and the proof for a tree of `size`.

    Raises FormatError if it is no receipt of `sign_root`.
    """
    headers, signature = _parts(receipt)
    proof = _encoded([size, index, list(hashes)])
    return _sign1(headers, {_PROOFS: {_INCLUSION: [proof]}}, None, signature)


def statement(
    signer: Signer, issuer: str, subject: str, entry: bytes, receipts: Sequence[bytes]
) -> bytes:
    """A transparent statement (RFC 9943): the signed entry with its receipts."""
    protected = {
        _ALGORITHM: _EDDSA,
        _CONTENT_TYPE: ENTRY_TYPE,
        _KEY_ID: key_id(signer.verifier.public).encode(),
        _CLAIMS: {_ISSUER: issuer, _SUBJECT: subject},
        _TYPE: STATEMENT_TYPE,
    }
    headers = _encoded(protected)
    signature = signer.sign(_signed_bytes(headers, entry))
    return _sign1(headers, {_RECEIPTS: list(receipts)}, entry, signature)


def _sign1(
    headers: bytes, unprotected: Mapping[int, Any], payload: bytes | None, signature: bytes
) -> bytes:
    return _encoded(cbor2.CBORTag(_SIGN1, [headers, unprotected, payload, signature]))


def _parts(receipt: bytes) -> tuple[bytes, bytes]:
    """Protected headers and signature of a receipt without a proof. Raises FormatError."""
    try:
        tagged = cbor2.loads(receipt)
    except cbor2.CBORDecodeError as error:
        raise FormatError("a receipt is no CBOR") from error
    match tagged:
        case cbor2.CBORTag(tag=18, value=[bytes(headers), {}, None, bytes(signature)]):
            return headers, signature
    raise FormatError("a receipt is no COSE_Sign1 without a payload")


def _signed_bytes(headers: bytes, payload: bytes) -> bytes:
    """What COSE_Sign1 signs (RFC 9052, section 4.4)."""
    return _encoded(["Signature1", headers, b"", payload])


def _encoded(value: object) -> bytes:
    return cbor2.dumps(value, canonical=True)


def _members(public: bytes) -> dict[str, str]:
    return {"crv": "Ed25519", "kty": "OKP", "x": _base64url(public)}


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
