"""Signed notes, their keys, and checkpoints: published examples, and what is rejected."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.ledger import (
    EMPTY_ROOT,
    Checkpoint,
    FormatError,
    LedgerError,
    SignatureError,
    SigningKey,
    VerifierKey,
    open_checkpoint,
    open_note,
    parse_note,
    sign_note,
)

from sdk.tests.support.ledger_book import flips

# The example of https://c2sp.org/signed-note, "Example".
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE = """\
This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
"""  # noqa: E501  # as published

# The key of Go's checksum database, as it is built into the go command, and a state it signed.
GO_KEY = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
GO_TREE = """\
go.sum database tree
31700353
qINS1GRFhWHwdkUeqLEoP4yEMkTBBzxBkGwGQlVlVcs=

— sum.golang.org Az3grnmrIUEDFqHzAElIQCPNoRFRAAdFo47fooyWKMHb89k11GJh5zHIfNCOBmwn/C3YI8oW9/C8DJ87F61QqspBYwM=
"""  # noqa: E501  # as published

# The example of https://c2sp.org/tlog-checkpoint, whose key it does not give.
SOFA = """\
example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
"""  # noqa: E501  # as published

LOG = SigningKey("audit.example/log/acme", bytes(range(32)))
NEXT = SigningKey("audit.example/log/acme", bytes(32))
OTHER = SigningKey("witness.example", bytes(range(1, 33)))
TEXT = "one\n\ntwo\n"
SIGNED = "text\n\n— name AAAAAAA=\n"


def test_published_example_note_is_opened() -> None:
    key = VerifierKey.parse(EXAMPLE_KEY)
    assert str(key) == EXAMPLE_KEY
    assert key.key_id.hex() == "530d903a"

    opened = open_note(EXAMPLE.encode(), [key])

    assert opened.text == "This is an example message.\n"
    assert opened.signers == (key,)
    assert opened.unknown == ()


def test_published_checkpoint_of_another_log_is_opened() -> None:
    key = VerifierKey.parse(GO_KEY)
    checkpoint = open_checkpoint(GO_TREE.encode(), "go.sum database tree", [key])
    assert checkpoint.size == 31_700_353
    assert checkpoint.root.hex().startswith("a88352d4")
    with pytest.raises(SignatureError, match=r"'sum\.golang\.org' is wrong"):
        open_checkpoint(GO_TREE.replace("317", "318").encode(), "go.sum database tree", [key])


def test_published_checkpoint_text_round_trips() -> None:
    text, (signature,) = parse_note(SOFA.encode())
    checkpoint = Checkpoint.parse(text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20_852_163)
    assert str(checkpoint) == text
    assert f"{text}\n{signature}" == SOFA


def test_first_key_and_signature_of_rfc_8032_match() -> None:
    """Section 7.1, test 2: the message is one byte, 0x72, and so is no note."""
    key = SigningKey(
        "rfc",
        bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"),
    )
    public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.verifier.public.hex() == public
    assert key.sign(b"r").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert "4ccd" not in repr(key)
    assert str(key.private) not in repr(key)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n")))
def test_signed_notes_open_with_any_known_key(text: str) -> None:
    note = sign_note(text + "\n", [LOG, OTHER])
    opened = open_note(note, [OTHER.verifier])
    assert opened.text == text + "\n"
    assert opened.signers == (OTHER.verifier,)
    assert [each.name for each in opened.unknown] == [LOG.name]


@given(st.binary() | st.text().map(str.encode))
def test_arbitrary_notes_raise_ledger_errors_only(note: bytes) -> None:
    with pytest.raises(LedgerError):
        open_note(note, [LOG.verifier])
    with pytest.raises(LedgerError):
        open_note(b"text\n\n" + note, [LOG.verifier])


def test_notes_open_with_either_key_during_rotation() -> None:
    note = sign_note(TEXT, [LOG, NEXT])
    for known in ([LOG], [NEXT], [LOG, NEXT, OTHER]):
        keys = [key.verifier for key in known]
        assert set(open_note(note, keys).signers) == set(keys) - {OTHER.verifier}


def test_wrong_signature_invalidates_a_note_only_for_a_known_key() -> None:
    good, bad = sign_note(TEXT, [LOG]).decode(), sign_note("other\n", [OTHER]).decode()
    note = (good + bad.rpartition("\n\n")[2]).encode()

    assert open_note(note, [LOG.verifier]).signers == (LOG.verifier,)
    with pytest.raises(SignatureError, match=r"the signature of 'witness\.example' is wrong"):
        open_note(note, [LOG.verifier, OTHER.verifier])


def test_key_is_identified_by_name_and_id_together() -> None:
    note = sign_note(TEXT, [LOG])
    renamed = VerifierKey("audit.example/log/other", LOG.verifier.public)
    for unknown in (NEXT.verifier, renamed):
        with pytest.raises(SignatureError, match=r"no known key signed .*acme' \([0-9a-f]{8}\)"):
            open_note(note, [unknown])
    with pytest.raises(SignatureError):
        open_note(note, [])


def test_two_known_keys_with_the_same_name_and_id_are_rejected() -> None:
    """A key id has 32 bits: some 100,000 keys are enough to find two that share one."""
    seen: dict[bytes, VerifierKey] = {}
    for number in range(1_000_000):
        key = VerifierKey("log", number.to_bytes(32))
        if other := seen.get(key.key_id):
            break
        seen[key.key_id] = key
    assert other
    with pytest.raises(FormatError, match="two keys of 'log' share the id"):
        open_note(sign_note(TEXT, [LOG]), [LOG.verifier, key, other])
    assert open_note(sign_note(TEXT, [LOG]), [LOG.verifier, LOG.verifier]).text == TEXT


def test_flipped_bit_invalidates_a_signed_note() -> None:
    note = sign_note("text\n", [LOG])
    for changed in flips(note):
        with pytest.raises(LedgerError):
            open_note(changed, [LOG.verifier])


def test_more_than_100_signatures_are_rejected() -> None:
    keys = [SigningKey(f"key{number}", bytes([number] * 32)) for number in range(16)]
    opened = open_note(sign_note(TEXT, keys), [keys[-1].verifier])
    assert len(opened.unknown) == 15
    line = SIGNED.rpartition("\n\n")[2]
    with pytest.raises(FormatError, match="up to 100 signatures, not 101"):
        parse_note(("text\n\n" + line * 101).encode())
    with pytest.raises(FormatError, match="1 to 100 keys, not 0"):
        sign_note(TEXT, [])


@pytest.mark.parametrize(
    ("note", "why"),
    [
        (b"", "an empty line"),
        (b"text\n", "an empty line"),
        (b"text\n\n", "complete signature lines"),
        (SIGNED[:-1].encode(), "complete signature lines"),
        (SIGNED.replace("\n\n", "\n").encode(), "an empty line"),
        (SIGNED.replace("—", "-").encode(), "'— name base64'"),
        (SIGNED.replace("name", "my name").encode(), "'— name base64'"),
        (SIGNED.replace("name", "na+me").encode(), "without spaces"),
        (SIGNED.replace("name", "na\u2003me").encode(), "without spaces"),
        (SIGNED.replace("— name", "— ").encode(), "without spaces"),
        (SIGNED.replace("AAAAAAA=", "AAAA").encode(), "too short"),
        (SIGNED.replace("AAAAAAA=", "AAAAAA==").encode(), "too short"),
        (SIGNED.replace("AAAAAAA=", "AAAAAAA").encode(), "not base64"),
        (SIGNED.replace("AAAAAAA=", "AAAAAAB=").encode(), "not canonical base64"),
        (SIGNED.replace("AAAAAAA=", "AAAA!AAA").encode(), "not base64"),
        (SIGNED.replace("text", "te\rxt").encode(), "control characters"),
        (SIGNED.replace("text", "te\x00xt").encode(), "control characters"),
        (SIGNED.encode() + b"\xff", "UTF-8"),
        pytest.param(b"x" * 1_000_001, "up to 1,000,000 bytes", id="long"),
    ],
)
def test_malformed_note_is_rejected_with_its_reason(note: bytes, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        parse_note(note)


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "newline"), ("text", "newline"), ("a\tb\n", "control"), ("\ud800\n", "surrogates")],
)
def test_invalid_note_text_is_not_signed(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        sign_note(text, [LOG])


@pytest.mark.parametrize(
    ("vkey", "why"),
    [
        ("", "name.id.key"),
        ("example.com/foo+530d903a", "name.id.key"),
        (EXAMPLE_KEY.replace("530d903a", "530d903b"), "a part of it was changed"),
        (EXAMPLE_KEY.replace("530d903a", "530D903A"), "a part of it was changed"),
        (EXAMPLE_KEY.replace("foo", "bar"), "a part of it was changed"),
        (EXAMPLE_KEY.replace("+Ae", "+BO"), "not an Ed25519 key"),
        (EXAMPLE_KEY[:-4], "32 bytes, not 29"),
        (EXAMPLE_KEY[:-1], "not base64"),
        (EXAMPLE_KEY.removeprefix("example.com/foo"), "the name of a key"),
        ("\ud800" + EXAMPLE_KEY, "the name of a key"),
    ],
)
def test_malformed_public_key_is_rejected_with_its_reason(vkey: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        VerifierKey.parse(vkey)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "three lines"),
        ("log\n5\n", "three lines"),
        ("log\n5\n{root}", "three lines"),
        ("\n5\n{root}\n", "one line each"),
        ("log\n5\n{root}\n\nmore\n", "one line each"),
        ("log\n05\n{root}\n", "leading zeroes"),
        ("log\n-5\n{root}\n", "decimal"),
        ("log\n٥\n{root}\n", "decimal"),
        ("log\n9223372036854775808\n{root}\n", "below 2"),
        pytest.param("log\n" + "9" * 5_000 + "\n{root}\n", "decimal", id="long"),
        ("log\n5\nAAAA\n", "has 3 bytes, not 32"),
        ("log\n5\n{root} \n", "not base64"),
    ],
)
def test_malformed_checkpoint_is_rejected_with_its_reason(text: str, why: str) -> None:
    root = str(Checkpoint("log", 0, EMPTY_ROOT)).split("\n")[2]
    with pytest.raises(FormatError, match=why):
        Checkpoint.parse(text.replace("{root}", root))


def test_checkpoint_opens_only_for_its_own_log() -> None:
    checkpoint = Checkpoint(LOG.name, 0, EMPTY_ROOT, ("extension",))
    note = checkpoint.sign([LOG])
    assert open_checkpoint(note, LOG.name, [LOG.verifier]) == checkpoint
    with pytest.raises(FormatError, match=r"from 'audit.example/log/acme', not from 'another'"):
        open_checkpoint(note, "another", [LOG.verifier])
    with pytest.raises(FormatError, match="below 2"):
        Checkpoint(LOG.name, 1 << 63, EMPTY_ROOT)


def test_missing_cryptography_extra_is_reported_on_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    key = VerifierKey.parse(EXAMPLE_KEY)
    with pytest.raises(ImportError, match=r"pip install 'tooltrail\[verify\]'"):
        open_note(EXAMPLE.encode(), [key])
    with pytest.raises(ImportError, match=r"pip install 'tooltrail\[verify\]'"):
        sign_note(TEXT, [LOG])
