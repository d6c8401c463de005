"""`tooltrail verify --witness`: what the signatures of witnesses add to a bundle."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from aics_tlog import sign_cosignature
from aics_tlog.note import b64_encode
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tooltrail.cli.main import main
from tooltrail.evidence import Policy
from tooltrail.ledger import FormatError, SigningKey, parse_note
from tooltrail.ledger.cosignature import WitnessKey, cosign

from sdk.tests.support.bundles import KEY, ORIGIN, Bundle, Log

AT = 1_795_780_800
LOG = Log.of(300)
WITNESSES = [SigningKey(f"w{n}.example", bytes([n]) * 32) for n in (1, 2, 3)]
KEYS = [WitnessKey(each.name, each.verifier.public) for each in WITNESSES]
BEGIN, END, SIZES = 40, 200, (20, 100, 250, 300)


def bundle(path: Path, signed: Mapping[int, list[int]], *, wrong: bool = False) -> Path:
    """A bundle whose checkpoints witnesses have signed: their numbers by size."""
    honest = Bundle.of(LOG, BEGIN, END, sizes=SIZES)
    notes = dict(honest.checkpoints)
    for size, numbers in signed.items():
        text, _ = parse_note(notes[size])
        for number in numbers:
            line = cosign("other\n" if wrong else text, WITNESSES[number], AT + number)
            notes[size] += str(line).encode()
    return honest.but(checkpoints=notes).write(path / "evidence.zip")


def run(path: Path, *options: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, result and message of the check of witnesses."""
    capsys.readouterr()
    code = main(["verify", str(path), "--key", str(KEY.verifier), "--json", *options])
    document = json.loads(capsys.readouterr().out)
    checks = [check for check in document["checks"] if check["name"] == "witnessed"]
    assert len(checks) == 1
    return code, checks[0]["result"], checks[0]["message"] or checks[0]["problems"][0]


def witnesses(*numbers: int) -> list[str]:
    """Options of the command line."""
    return [part for n in numbers for part in ("--witness", str(KEYS[n]))]


def test_two_of_three_vouch_for_all_entries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bundle(tmp_path, {250: [0], 300: [2]})
    code, result, message = run(path, *witnesses(0, 1, 2), "--policy", "2of3", capsys=capsys)
    assert (code, result) == (0, "verified")
    assert message == (
        "2 of 3 witnesses vouch for every entry of the bundle: w1.example (250 entries, "
        "2026-11-27 12:00:00 UTC), w3.example (300 entries, 2026-11-27 12:00:02 UTC)"
    )


@pytest.mark.parametrize(
    ("signed", "policy", "message"),
    [
        ({}, "2of3", "signed by 0 of 3 witnesses, 2 needed"),
        ({300: [1]}, "2of3", "signed by 1 of 3 witnesses, 2 needed: w2.example"),
        ({300: [0, 1]}, "3of3", "signed by 2 of 3 witnesses, 3 needed"),
        ({100: [0, 1], 300: [1]}, "2of3", "2 of 3 witnesses vouch only for the entries before 100"),
    ],
)
def test_too_few_signatures_leave_it_undecided(
    signed: dict[int, list[int]],
    policy: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = bundle(tmp_path, signed)
    code, result, why = run(path, *witnesses(0, 1, 2), "--policy", policy, capsys=capsys)
    assert (code, result) == (2, "not checked")
    assert why.startswith(message)


def test_wrong_signature_of_a_witness_is_an_alteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bundle(tmp_path, {300: [0]}, wrong=True)
    code, result, _ = run(path, *witnesses(0), capsys=capsys)
    assert (code, result) == (1, "failed")
    main(["verify", str(path), *witnesses(0)])
    assert "the signature of 'w1.example' is wrong" in capsys.readouterr().out
    assert main(["verify", str(path), "--key", str(KEY.verifier)]) == 0, "nobody asked for it"


def test_output_says_what_witnesses_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bundle(tmp_path, {300: [0]})
    for options, expected in (
        ([], "No signature of a witness was checked"),
        (witnesses(0), "The witnesses saw one ledger that only grew"),
        (witnesses(1), "Too few of your witnesses vouch"),
    ):
        capsys.readouterr()
        main(["verify", str(path), *options])
        printed = capsys.readouterr().out
        for each in ("No signature of", "The witnesses saw", "Too few of"):
            assert (each in printed) == expected.startswith(each)


def test_signature_of_an_independent_witness_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = Ed25519PrivateKey.generate()
    blob, line = sign_cosignature(private, "w.example", AT, ORIGIN, 300, LOG.root(300))
    honest = Bundle.of(LOG, BEGIN, END, sizes=SIZES)
    shown = f"— {line.name} {b64_encode(line.key_id + blob)}\n"
    notes = honest.checkpoints | {300: honest.checkpoints[300] + shown.encode()}
    path = honest.but(checkpoints=notes).write(tmp_path / "evidence.zip")
    key = WitnessKey("w.example", private.public_key().public_bytes_raw())
    code, result, _ = run(path, "--witness", str(key), capsys=capsys)
    assert (code, result) == (0, "verified")


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("2", "must have the form 2of3"),
        ("0of3", "must have the form 2of3"),
        ("4of3", "4 of 3 witnesses cannot sign"),
        ("1of2", "the policy is about 2 witnesses, and 3 keys are given"),
    ],
)
def test_policies_that_cannot_be_meant(
    policy: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FormatError, match=why):
        Policy.of(KEYS, policy)
    path = bundle(tmp_path, {})
    assert main(["verify", str(path), *witnesses(0, 1, 2), "--policy", policy]) == 2
    assert why in capsys.readouterr().err


def test_one_key_under_two_names_is_one_witness() -> None:
    twice = [KEYS[0], WitnessKey("other.example", KEYS[0].public)]
    with pytest.raises(FormatError, match="the same key"):
        Policy.of(twice, "2of2")


def test_policy_without_witnesses_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(bundle(tmp_path, {})), "--policy", "1of1"]) == 2
    assert "needs the keys of witnesses" in capsys.readouterr().err


def test_file_of_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = tmp_path / "witnesses.txt"
    keys.write_text("".join(f"{key}\n" for key in KEYS))
    path = bundle(tmp_path, {300: [0, 1]})
    code, result, _ = run(path, "--witness", str(keys), "--policy", "2of3", capsys=capsys)
    assert (code, result) == (0, "verified")
