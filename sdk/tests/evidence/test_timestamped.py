"""Tokens of a time authority: `openssl ts` makes them, and `tooltrail verify --tsa` checks them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tooltrail.cli.main import main
from tooltrail.ledger import FormatError, SignatureError, parse_note
from tooltrail.ledger.note import Signature
from tooltrail.ledger.timestamp import (
    OtherAuthorityError,
    read_certificates,
    time_of_token,
    timestamp_line,
    timestamp_query,
    token_in,
)

from sdk.tests.support.bundles import KEY, Bundle, Log
from sdk.tests.support.time_authority import TimeAuthority

LOG = Log.of(300)
SIZES = (100, 250, 300)
BEGIN, END = 40, 200


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TimeAuthority:
    return TimeAuthority(tmp_path_factory.mktemp("authority") / "a")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> TimeAuthority:
    return TimeAuthority(tmp_path_factory.mktemp("authority") / "b")


def token_over(authority: TimeAuthority, text: str) -> bytes:
    query, nonce = timestamp_query(text)
    return token_in(authority.reply(query), text, nonce)


def bundle(authority: TimeAuthority, sizes: Sequence[int], path: Path) -> Path:
    """A bundle with tokens on the checkpoints of these sizes."""
    honest = Bundle.of(LOG, BEGIN, END, sizes=SIZES)
    notes = dict(honest.checkpoints)
    for size in sizes:
        text, _ = parse_note(notes[size])
        line = timestamp_line("time.example", token_over(authority, text))
        notes[size] += str(line).encode()
    return honest.but(checkpoints=notes).write(path / "evidence.zip")


def run(
    path: Path, ca: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, str, str]:
    capsys.readouterr()
    key = str(KEY.verifier)
    code = main(["verify", str(path), "--key", key, "--tsa", str(ca), "--json", *options])
    checks = json.loads(capsys.readouterr().out)["checks"]
    (check,) = [each for each in checks if each["name"] == "timestamped"]
    return code, check["result"], (check["problems"] or [check["message"]])[0]


def test_token_says_when_and_openssl_agrees(authority: TimeAuthority) -> None:
    text, _ = parse_note(LOG.checkpoint(300))
    token = token_over(authority, text)
    assert authority.accepts(token, text.encode())
    assert not authority.accepts(token, b"another text\n")
    trusted = read_certificates(authority.ca.read_bytes())
    at = time_of_token(text, timestamp_line("time.example", token), trusted)
    assert at is not None
    assert abs(datetime.now(UTC) - at) < timedelta(hours=1), "this machine's clock"


def test_tokens_cover_the_entries_before_them(
    authority: TimeAuthority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result, message = run(bundle(authority, (100, 250), tmp_path), authority.ca, capsys)
    assert (code, result) == (0, "verified")
    assert message.startswith(
        "every entry of the bundle existed then: your authority saw the first 250 entries at 20"
    )
    code, result, message = run(bundle(authority, (100,), tmp_path), authority.ca, capsys)
    assert (code, result) == (2, "not checked")
    assert message.startswith("no token covers the entries from 100: your authority saw the first")
    code, result, message = run(bundle(authority, (), tmp_path), authority.ca, capsys)
    assert (code, result, message) == (
        2,
        "not checked",
        "no checkpoint has a token of a time authority",
    )


def test_token_of_another_authority_does_not_count(
    authority: TimeAuthority,
    other: TimeAuthority,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, result, message = run(bundle(other, (300,), tmp_path), authority.ca, capsys)
    assert (code, result) == (2, "not checked")
    assert message.startswith("the token of 'time.example' is not of your authority")


def test_token_of_another_checkpoint_is_an_alteration(
    authority: TimeAuthority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Bundle.of(LOG, BEGIN, END, sizes=SIZES)
    token = token_over(authority, parse_note(honest.checkpoints[250])[0])
    moved = honest.checkpoints[300] + str(timestamp_line("time.example", token)).encode()
    path = honest.but(checkpoints=honest.checkpoints | {300: moved}).write(tmp_path / "e.zip")
    code, result, message = run(path, authority.ca, capsys)
    assert (code, result) == (1, "failed")
    assert "it is about another text" in message
    assert main(["verify", str(path), "--key", str(KEY.verifier)]) == 0, "nobody asked for it"


def test_altered_tokens_are_not_believed(authority: TimeAuthority) -> None:
    text, _ = parse_note(LOG.checkpoint(300))
    token = token_over(authority, text)
    trusted = read_certificates(authority.ca.read_bytes())
    for at in range(0, len(token), 97):
        bad = bytearray(token)
        bad[at] ^= 0x40
        line = timestamp_line("time.example", bytes(bad))
        try:
            believed = time_of_token(text, line, trusted)
        except SignatureError:
            continue
        # What is not signed may differ, such as a certificate that nobody needs.
        assert believed == time_of_token(text, timestamp_line("t", token), trusted)


def test_answers_that_are_none(authority: TimeAuthority) -> None:
    text, _ = parse_note(LOG.checkpoint(300))
    query, nonce = timestamp_query(text)
    answer = authority.reply(query)
    for reply, of, number, why in (
        (b"", text, nonce, "not an answer of RFC 3161"),
        (b"<html>", text, nonce, "not an answer of RFC 3161"),
        (answer, "another\n", nonce, "it is about another text"),
        (answer, text, nonce + 1, "to another request"),
    ):
        with pytest.raises(FormatError, match=why):
            token_in(reply, of, number)


def test_other_lines_are_no_tokens(authority: TimeAuthority) -> None:
    text, signatures = parse_note(LOG.checkpoint(300))
    trusted = read_certificates(authority.ca.read_bytes())
    assert [time_of_token(text, each, trusted) for each in signatures] == [None]
    line = timestamp_line("time.example", b"no token")
    with pytest.raises(SignatureError) as raised:
        time_of_token(text, line, trusted)
    assert not isinstance(raised.value, OtherAuthorityError)
    assert time_of_token(text, Signature("other", line.key_id, b"x"), trusted) is None
    with pytest.raises(FormatError, match="no certificates"):
        read_certificates(b"no PEM")
