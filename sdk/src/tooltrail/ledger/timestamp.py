"""A time authority's token over a checkpoint: RFC 3161, as a further line below the note.

    line   = "— " ‖ name ‖ " " ‖ base64(key id ‖ token)
    key id = SHA256(name ‖ "\\n" ‖ 0xff ‖ "rfc3161/v1")[:4]

`token` is the DER of a TimeStampToken over the SHA-256 of the note's text. The name says where it
is from, and proves nothing: the token has the authority's certificate. C2SP keeps 0xff for
signatures that it does not define, so whoever does not know them ignores the line.

Requests and checks need the extra `timestamp`.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING

from tooltrail.ledger.errors import FormatError, SignatureError
from tooltrail.ledger.keys import key_id_of
from tooltrail.ledger.lines import shown
from tooltrail.ledger.note import Signature

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampResponse

QUERY_TYPE = "application/timestamp-query"
REPLY_TYPE = "application/timestamp-reply"
_ALGORITHM, _KIND = b"\xff", b"rfc3161/v1"
_GRANTED = b"\x30\x03\x02\x01\x00"
_SHA256 = "2.16.840.1.101.3.4.2.1"


class OtherAuthorityError(SignatureError):
    """The token is of an authority that the given certificates do not include."""


def timestamp_query(text: str) -> tuple[bytes, int]:
    """A request for a token over a note's text, and its nonce. Raises ImportError."""
    client = _client()
    request = (
        client.TimestampRequestBuilder()
        .data(text.encode())
        .hash_algorithm(client.HashAlgorithm.SHA256)
        .build()
    )
    return bytes(request.as_bytes()), int(request.nonce)


def token_in(reply: bytes, text: str, nonce: int) -> bytes:
    """The token in an authority's answer to a request for `text`.

    Whether the authority is a trusted one is not checked. Raises FormatError if it is no answer to
    this request, and ImportError.
    """
    try:
        answer = _client().decode_timestamp_response(reply)
        if answer.status != 0:
            reason = " ".join(answer.status_string) or f"status {answer.status}"
            raise FormatError(f"the authority refused: {shown(reason)}")
        _check_imprint(answer, text)
        if answer.tst_info.nonce != nonce:
            raise FormatError("the answer is to another request")
        return bytes(answer.time_stamp_token())
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"not an answer of RFC 3161: {shown(str(error))}") from error


def timestamp_line(name: str, token: bytes) -> Signature:
    """The line of a token. `name` says where it is from."""
    return Signature(name, _key_id(name), token)


def read_certificates(pem: bytes) -> list["Certificate"]:
    """Certificates of time authorities. Raises FormatError, or ImportError."""
    _client()
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(pem)
    except ValueError as error:
        raise FormatError(f"no certificates in PEM: {error}") from error


def time_of_token(
    text: str, signature: Signature, trusted: Sequence["Certificate"]
) -> datetime | None:
    """When an authority that the certificates include saw a note's text; None if it is no token.

    Raises OtherAuthorityError for a token of another authority, SignatureError for a wrong one, and
    ImportError.
    """
    if signature.key_id != _key_id(signature.name):
        return None
    client = _client()
    try:
        answer = client.decode_timestamp_response(_as_reply(signature.signature))
        _check_imprint(answer, text)
    except ValueError as error:
        raise SignatureError(f"the token of {shown(signature.name)}: {error}") from error
    builder = client.VerifierBuilder()
    for each in dict.fromkeys(trusted):
        builder = (
            builder.add_root_certificate(each)
            if each.issuer == each.subject
            else builder.add_intermediate_certificate(each)
        )
    try:
        builder.build().verify(answer, sha256(text.encode()).digest())
    except (client.VerificationError, ValueError) as error:
        raise OtherAuthorityError(
            f"the token of {shown(signature.name)} is not of your authority: {shown(str(error))}"
        ) from error
    at: datetime = answer.tst_info.gen_time
    return at


def _check_imprint(answer: "TimeStampResponse", text: str) -> None:
    imprint = answer.tst_info.message_imprint
    is_sha256 = imprint.hash_algorithm.dotted_string == _SHA256
    if not is_sha256 or bytes(imprint.message) != sha256(text.encode()).digest():
        raise FormatError("it is about another text")


def _as_reply(token: bytes) -> bytes:
    """A token as the answer of an authority: a sequence of the status and the token."""
    content = _GRANTED + token
    size = len(content).to_bytes(4).lstrip(b"\0")
    short = bytes([len(content)]) if len(content) < 128 else bytes([0x80 | len(size)]) + size
    return b"\x30" + short + content


def _key_id(name: str) -> bytes:
    return key_id_of(name, _ALGORITHM, _KIND)


def _client() -> ModuleType:
    try:
        import rfc3161_client
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "tokens of time authorities need the extra `timestamp`: "
            "pip install 'tooltrail[timestamp]'",
            name=missing.name,
        ) from missing
    return rfc3161_client
