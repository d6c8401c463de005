"""A witness signs only states of one ledger, whoever asks, and however often it is killed."""

from base64 import b64decode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path

import pytest
from aics_tlog import verify_cosignature
from aics_tlog.note import parse_vkey
from aics_witness import WitnessAhead, WitnessRejected, submit_checkpoint
from tooltrail.cli.main import main
from tooltrail.evidence.witness import BODY_MAX, Witness
from tooltrail.ledger import (
    Checkpoint,
    FormatError,
    SignatureError,
    SigningKey,
    VerifierKey,
    consistency_proof,
    parse_note,
)
from tooltrail.ledger.add_checkpoint import HASHES_MAX, SIZE_TYPE, AddCheckpoint
from tooltrail.ledger.cosignature import WitnessKey, cosigned_by
from tooltrail.ledger.note import Signature

from sdk.tests.support.bundles import KEY, ORIGIN, OTHER_KEY, Log
from sdk.tests.support.published_logs import (
    MONKEYS,
    MONKEYS_5,
    MONKEYS_5_TO_8,
    MONKEYS_8,
    SIGSUM_ORIGIN,
    SIGSUM_PUBLIC,
    SIGSUM_REQUESTS,
)
from sdk.tests.support.witnesses import NAME, WitnessProcess, asking, brought, running_witness

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
LOG = Log.of(220)
SHARED = 100
"""The first entries of both sides of a fork."""


def forked() -> Log:
    """A ledger with other entries after the first `SHARED` ones."""
    log = Log.of(SHARED)
    for number in range(120):
        log.add(b'{"type":"toolExecutionStart","forged":%d}' % number)
    return log


FORK = forked()


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "w", NAME, [KEY.verifier], now=lambda: NOW)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessProcess]:
    with running_witness(tmp_path_factory.mktemp("running") / "w") as one:
        yield one


def test_growing_ledger_is_signed(witness: Witness) -> None:
    old = 0
    for size in (0, 1, 7, 7, 128, 129, 220):
        answer = witness.answer(asking(LOG, old, size))
        assert answer.status == HTTPStatus.OK, answer
        text, _ = parse_note(LOG.checkpoint(size))
        line = Signature.parse(answer.body.removesuffix("\n"))
        assert cosigned_by(text, [line], [witness.key]) == {witness.key: int(NOW.timestamp())}
        old = size


def test_independent_verifier_accepts_the_signature(witness: Witness) -> None:
    answer = witness.answer(asking(LOG, 0, 50))
    blob = b64decode(answer.body.split(" ")[2])[4:]
    key = parse_vkey(str(witness.key))
    assert key.key_id == witness.key.key_id
    assert verify_cosignature(blob, NAME, key.public_key, ORIGIN, 50, LOG.root(50))
    assert not verify_cosignature(blob, NAME, key.public_key, ORIGIN, 50, LOG.root(51))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", HTTPStatus.BAD_REQUEST),
        (b"\xff\n\n" + LOG.checkpoint(60), HTTPStatus.BAD_REQUEST),
        (b"old 050\n\n" + LOG.checkpoint(60), HTTPStatus.BAD_REQUEST),
        (b"old 50\nAAAA\n\n" + LOG.checkpoint(60), HTTPStatus.BAD_REQUEST),
        (b"old 50\n\nno checkpoint\n", HTTPStatus.BAD_REQUEST),
        (AddCheckpoint(50, (bytes(32),) * (HASHES_MAX + 1), LOG.checkpoint(60)).to_bytes(), 400),
        (AddCheckpoint(61, (), LOG.checkpoint(60)).to_bytes(), HTTPStatus.BAD_REQUEST),
        (
            AddCheckpoint(
                0,
                (),
                Checkpoint("else.example", 1, bytes(32)).sign(
                    [SigningKey("else.example", bytes(32))]
                ),
            ).to_bytes(),
            HTTPStatus.NOT_FOUND,
        ),
        (AddCheckpoint(50, (), LOG.checkpoint(60, OTHER_KEY)).to_bytes(), HTTPStatus.FORBIDDEN),
        (asking(LOG, 0, 60), HTTPStatus.CONFLICT),
        (asking(LOG, 49, 60), HTTPStatus.CONFLICT),
        (AddCheckpoint(50, (), LOG.checkpoint(60)).to_bytes(), HTTPStatus.UNPROCESSABLE_ENTITY),
        (
            AddCheckpoint(
                50,
                tuple(consistency_proof(50, 60, LOG.subtree)),
                Checkpoint(ORIGIN, 60, LOG.root(61)).sign([KEY]),
            ).to_bytes(),
            HTTPStatus.UNPROCESSABLE_ENTITY,
        ),
        (
            AddCheckpoint(50, (), Checkpoint(ORIGIN, 50, LOG.root(51)).sign([KEY])).to_bytes(),
            HTTPStatus.CONFLICT,
        ),
    ],
)
def test_anything_else_is_refused(witness: Witness, body: bytes, status: int) -> None:
    assert witness.answer(asking(LOG, 0, 50)).status == HTTPStatus.OK
    answer = witness.answer(body)
    assert answer.status == status, answer
    assert "—" not in answer.body
    if answer.media_type == SIZE_TYPE:
        assert answer.body == "50\n"
    assert witness.answer(asking(LOG, 50, 60)).status == HTTPStatus.OK, "the state is unchanged"


def test_requests_of_litewitness_get_its_answers(tmp_path: Path) -> None:
    """Two differ: C2SP has 404 for an unknown log, and base64 has one form here."""
    log = VerifierKey(SIGSUM_ORIGIN, SIGSUM_PUBLIC)
    witness = Witness(tmp_path / "w", NAME, [log], now=lambda: NOW)
    statuses = []
    for body, status in SIGSUM_REQUESTS:
        answer = witness.answer(body.encode())
        statuses.append((int(answer.status), status))
        if answer.status == HTTPStatus.OK:
            text, _ = parse_note(body.partition("\n\n")[2].encode())
            line = Signature.parse(answer.body.removesuffix("\n"))
            assert cosigned_by(text, [line], [witness.key]) == {witness.key: int(NOW.timestamp())}
        elif answer.status == HTTPStatus.CONFLICT:
            assert answer.media_type == SIZE_TYPE
            assert answer.body == ("3\n" if "old 1" in body else "5\n")
    differing = {(400, 403), (404, 403)}
    assert [one for one in statuses if one[0] != one[1]] == sorted(differing)
    assert [ours for ours, _ in statuses] == [200, 400, 404, 422, 422, 200, 409, 200, 409]


def test_log_of_another_implementation_is_followed(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "w", NAME, [VerifierKey.parse(MONKEYS)], now=lambda: NOW)
    five, eight = MONKEYS_5.encode(), MONKEYS_8.encode()

    def status(old: int, proof: Sequence[bytes], note: bytes) -> int:
        return int(witness.answer(AddCheckpoint(old, tuple(proof), note).to_bytes()).status)

    assert status(0, MONKEYS_5_TO_8, five) == HTTPStatus.UNPROCESSABLE_ENTITY, "superfluous"
    assert status(0, (), five) == HTTPStatus.OK
    assert status(5, (), five) == HTTPStatus.OK, "the same again"
    assert status(2, MONKEYS_5_TO_8, eight) == HTTPStatus.CONFLICT, "stale"
    assert status(5, (), eight) == HTTPStatus.UNPROCESSABLE_ENTITY, "no proof"
    garbage = [bytes([number]) * 32 for number in range(4)]
    assert status(5, garbage, eight) == HTTPStatus.UNPROCESSABLE_ENTITY
    assert status(5, MONKEYS_5_TO_8, eight) == HTTPStatus.OK
    assert status(8, MONKEYS_5_TO_8, five) == HTTPStatus.BAD_REQUEST, "smaller"


def test_first_checkpoint_needs_no_proof_and_an_empty_log_has_one_root(witness: Witness) -> None:
    forged = Checkpoint(ORIGIN, 0, bytes(32)).sign([KEY])
    unprocessable = HTTPStatus.UNPROCESSABLE_ENTITY
    assert witness.answer(AddCheckpoint(0, (), forged).to_bytes()).status == unprocessable
    superfluous = AddCheckpoint(0, (bytes(32),), LOG.checkpoint(5)).to_bytes()
    assert witness.answer(superfluous).status == unprocessable


def test_contradictions_are_kept_as_evidence(witness: Witness, tmp_path: Path) -> None:
    witness.answer(asking(LOG, 0, 150))
    witness.answer(asking(FORK, 150, 150))
    witness.answer(asking(FORK, 150, 160))
    kept = [file.read_bytes() for file in sorted((tmp_path / "w" / "refused").iterdir())]
    assert sorted(kept) == sorted([FORK.checkpoint(150), FORK.checkpoint(160)])


def test_memory_outlives_the_process_and_damage_stops_signing(
    witness: Witness, tmp_path: Path
) -> None:
    witness.answer(asking(LOG, 0, 150))
    again = Witness(tmp_path / "w", NAME, [KEY.verifier])
    assert again.key == witness.key
    assert again.answer(asking(FORK, 100, 120)).body == "150\n"
    (file,) = (tmp_path / "w" / "cosigned").iterdir()
    file.write_bytes(b"damaged")
    with pytest.raises(OSError, match="was changed"):
        again.answer(asking(LOG, 150, 160))
    (tmp_path / "w" / "key").unlink()
    with pytest.raises(FormatError, match="is missing"):
        Witness(tmp_path / "w", NAME, [KEY.verifier])


def test_key_is_private_and_the_name_stays(witness: Witness, tmp_path: Path) -> None:
    assert (tmp_path / "w" / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FormatError, match=r"is witness\.example/w1, not other"):
        Witness(tmp_path / "w", "other", [KEY.verifier])


def test_several_logs_do_not_meet(tmp_path: Path) -> None:
    other = SigningKey("other.example/log/b", bytes(range(2, 34)))
    witness = Witness(tmp_path / "w", NAME, [KEY.verifier, OTHER_KEY.verifier, other.verifier])
    note = Checkpoint(other.name, 9, FORK.root(9)).sign([other])
    assert witness.answer(asking(LOG, 0, 150)).status == HTTPStatus.OK
    assert witness.answer(AddCheckpoint(0, (), note).to_bytes()).status == HTTPStatus.OK
    rotated = AddCheckpoint(150, (), LOG.checkpoint(150, OTHER_KEY)).to_bytes()
    assert witness.answer(rotated).status == HTTPStatus.OK


def test_altered_signatures_are_wrong(witness: Witness) -> None:
    line = Signature.parse(witness.answer(asking(LOG, 0, 50)).body.removesuffix("\n"))
    text, _ = parse_note(LOG.checkpoint(50))
    for at in range(len(line.signature)):
        bad = bytearray(line.signature)
        bad[at] ^= 1
        with pytest.raises(SignatureError):
            witness.key.time_of(text, Signature(line.name, line.key_id, bytes(bad)))
    for wrong in (line.signature[:-1], line.signature + b"\0", b"\x80" + line.signature[1:]):
        with pytest.raises(SignatureError):
            witness.key.time_of(text, Signature(line.name, line.key_id, wrong))
    with pytest.raises(FormatError, match="not the Ed25519 key of a witness"):
        WitnessKey.parse(str(KEY.verifier))


def test_independent_client_is_served(running: WitnessProcess) -> None:
    def submit(log: Log, size: int, old: int | None = None) -> str:
        return submit_checkpoint(
            running.url,
            log.checkpoint(size),
            lambda old, new: consistency_proof(old, new, log.subtree),
            witness_vkey=str(running.key),
            old_size=old,
        )

    for size in (120, 120, 150, 210):
        assert submit(LOG, size).startswith(f"— {NAME} ")
    with pytest.raises(WitnessAhead):
        submit(LOG, 200)
    with pytest.raises(WitnessRejected) as refused:
        submit(FORK, 215, old=210)
    assert refused.value.status == HTTPStatus.UNPROCESSABLE_ENTITY


def test_hostile_requests_get_an_answer(running: WitnessProcess) -> None:
    assert running.post(b"", "/elsewhere")[0] == HTTPStatus.NOT_FOUND
    assert running.post(b"x" * (BODY_MAX + 1))[0] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert running.post(b"old 1\n\n\n\n")[0] == HTTPStatus.BAD_REQUEST


def one_history(sizes: dict[int, set[str]]) -> bool:
    """Whether the signed states beyond the fork are all of one side."""
    sides = set().union(*(names for size, names in sizes.items() if size > SHARED))
    return len(sides) == 1


@pytest.mark.slow
def test_concurrent_requests_never_get_both_sides_of_a_fork(tmp_path: Path) -> None:
    signed: dict[int, set[str]] = {}
    with running_witness(tmp_path / "w") as one, running_witness(tmp_path / "w") as two:
        assert one.key == two.key, "two processes use one folder"

        def ask(number: int) -> None:
            log, side = ((LOG, "honest"), (FORK, "forged"))[number % 2]
            size = 95 + number // 2
            if brought((one, two)[number % 3 % 2].post, log, size):
                signed.setdefault(size, set()).add(side)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(120)))
        assert any(size > SHARED for size in signed)
    assert one_history(signed)


@pytest.mark.slow
def test_killed_witness_never_signs_both_sides_of_a_fork(tmp_path: Path) -> None:
    signed: dict[int, set[str]] = {}

    def ask(one: WitnessProcess, number: int, size: int) -> None:
        log, side = ((LOG, "honest"), (FORK, "forged"))[number % 2]
        with suppress(OSError, HTTPException):  # it was killed
            if brought(one.post, log, size):
                signed.setdefault(size, set()).add(side)

    for round_ in range(6):
        first = 90 + 15 * round_
        with running_witness(tmp_path / "w") as one, ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, one, number, first + number // 2) for number in range(40)]
            asked[5 + 5 * round_].result(120)
            one.process.kill()
            for each in asked:
                each.result(120)
    assert any(each > SHARED for each in signed)
    assert one_history(signed)


def test_command_explains_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, key = str(tmp_path / "w"), str(KEY.verifier)
    begin = ["witness", "--folder", folder, "--listen", "127.0.0.1:0"]
    assert main([*begin, "--name", "w +1", "--log", key]) == 2
    assert "name of a key" in capsys.readouterr().err
    assert main([*begin, "--name", NAME, "--log", str(tmp_path / "nothing")]) == 2
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*begin[:-1], "nowhere", "--name", NAME, "--log", key])
    assert "must be host:port" in capsys.readouterr().err


@pytest.mark.slow
def test_witness_stops_when_it_is_told_to(tmp_path: Path) -> None:
    with running_witness(tmp_path / "w") as one:
        one.process.terminate()
        assert one.process.wait(60) == 0
