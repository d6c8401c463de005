"""Signatures of witnesses that others run, over a checkpoint of a log that others run."""

from base64 import b64decode

import pytest
from tooltrail.ledger import (
    FormatError,
    LedgerError,
    SignatureError,
    SigningKey,
    UnknownSignerError,
    VerifierKey,
    open_checkpoint,
    open_note,
    parse_note,
    sign_note,
)
from tooltrail.ledger.cosignature import WitnessKey, cosigned_by
from tooltrail.ledger.note import Signature

from sdk.tests.support.published_logs import (
    ARCHE,
    ARCHE_NOTE,
    ARCHE_WITNESSES,
    BY_ENOCH,
    BY_PETER,
    CRYPTOGRAPHY,
    ENOCH,
    PETER,
    PETER_PRIVATE,
)


def test_signatures_of_public_witnesses_are_verified() -> None:
    witnesses = [WitnessKey.parse(vkey) for vkey in ARCHE_WITNESSES]
    assert tuple(map(str, witnesses)) == ARCHE_WITNESSES
    log = VerifierKey.parse(ARCHE)
    assert open_checkpoint(ARCHE_NOTE.encode(), log.name, [log]).size == 1_432_088_532
    text, signatures = parse_note(ARCHE_NOTE.encode())
    assert cosigned_by(text, signatures, witnesses) == dict.fromkeys(witnesses, 0x6A122120)


@pytest.mark.parametrize("place", range(4))
def test_altered_text_time_or_signature_of_a_public_witness_is_wrong(place: int) -> None:
    text, signatures = parse_note(ARCHE_NOTE.encode())
    witness = WitnessKey.parse(ARCHE_WITNESSES[place])
    (signature,) = [one for one in signatures if one.key_id == witness.key_id]
    for at in (7, 8, 71):  # the time's last byte; the first and the last byte of the signature
        data = bytearray(signature.signature)
        data[at] ^= 1
        altered = Signature(witness.name, witness.key_id, bytes(data))
        with pytest.raises(SignatureError):
            cosigned_by(text, [altered], [witness])
    with pytest.raises(SignatureError):
        cosigned_by(text.replace("1432088532", "1432088533"), signatures, [witness])


def test_note_is_signed_as_go_signs_it() -> None:
    private = b64decode(PETER_PRIVATE)
    assert private[:1] == b"\x01"
    key = SigningKey("PeterNeumann", private[1:])
    assert str(key.verifier) == PETER
    assert sign_note(CRYPTOGRAPHY, [key]).decode() == f"{CRYPTOGRAPHY}\n{BY_PETER}"


def test_note_is_opened_as_go_opens_it() -> None:
    peter, enoch = VerifierKey.parse(PETER), VerifierKey.parse(ENOCH)
    note = f"{CRYPTOGRAPHY}\n{BY_PETER}{BY_ENOCH}".encode()
    opened = open_note(note, [peter])
    assert (opened.text, opened.signers) == (CRYPTOGRAPHY, (peter,))
    assert [str(one) for one in opened.unknown] == [BY_ENOCH]
    assert open_note(note, [enoch, peter]).signers == (peter, enoch)
    with pytest.raises(UnknownSignerError):
        open_note(note, [])
    with pytest.raises(FormatError):
        open_note(f"{CRYPTOGRAPHY}\n{BY_PETER * 101}".encode(), [peter])
    # A known key's wrong signature is an error, an unknown one's is not.
    wrong = BY_ENOCH[:60] + "ABCD" + BY_ENOCH[64:]
    whole = f"{CRYPTOGRAPHY}\n{BY_PETER}{wrong}".encode()
    assert open_note(whole, [peter]).signers == (peter,)
    with pytest.raises(SignatureError):
        open_note(whole, [peter, enoch])


@pytest.mark.parametrize(
    "note",
    [
        CRYPTOGRAPHY,
        f"{CRYPTOGRAPHY}\n",
        f"{CRYPTOGRAPHY}\n{BY_PETER[:-1]}",
        f"\x01{CRYPTOGRAPHY}\n{BY_PETER}",
        f"{CRYPTOGRAPHY}\n— Bad Name {BY_PETER.split(' ')[2]}",
        f"{CRYPTOGRAPHY}\n{BY_PETER}Unexpected line.\n",
    ],
)
def test_note_that_go_calls_malformed_is_malformed(note: str) -> None:
    with pytest.raises(FormatError):
        open_note(note.encode(), [VerifierKey.parse(PETER)])


def test_key_that_go_calls_malformed_is_malformed() -> None:
    """Each part of a key, and each key with one character more advanced, as in Go's tests."""
    broken = {
        PETER[begin:end]
        for begin in range(len(PETER) + 1)
        for end in range(begin + 1, len(PETER) + 1)
    } - {PETER}
    broken |= {PETER[:at] + chr(ord(char) + 1) + PETER[at + 1 :] for at, char in enumerate(PETER)}
    broken.add("PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==")
    broken.add("PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    for vkey in broken:
        with pytest.raises(LedgerError):
            VerifierKey.parse(vkey)
