"""A sample from its first action to a bundle that verifies."""

import json
import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from tooltrail.evidence import Policy
from tooltrail.evidence.sample.selection import draw, indexes_in
from tooltrail.ledger import VerifierKey

from audit.evidence import bundling
from audit.ledger import proofs
from audit.ledger.witnesses import bringing
from audit.ledger.witnesses.policy import read_policy
from audit.models import SampleState
from audit.pages.settings.acts import save_witnesses
from audit.sampling import collecting
from config import env
from sdk.tests.support.witnesses import running_witness
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tenants.service_accounts import create_account
from tests.support.api_client import Program
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import as_owner
from tests.support.pages import signed_in
from tests.support.retention import apply_retention, set_retention
from tests.support.samples import (
    arrive,
    begin_sample,
    conclude_all,
    draw_sample,
    post,
    read_sample,
    result_of,
    sample_bundle,
    second_auditor,
    sign_ledger,
    signed_sample,
    verified,
    words,
)
from tests.support.snippets import snippet

type Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def calls(acme: Cast) -> Cast:
    """Ten calls of the tool `refund` and ten of another one."""
    for number in range(20):
        send_events(acme.tenant, make_call(tool_name="refund" if number % 2 else "other"))
    return acme


def page_of(cast: Cast, pk: Any) -> str:
    """The text of a sample's page, as the auditor sees it."""
    answer = signed_in(cast.auditor).get(reverse("sample_detail", args=[pk]))
    assert answer.status_code == 200
    return words(answer.content.decode())


@pytest.mark.slow
def test_signed_sample_verifies_offline(calls: Cast, tmp_path: Path) -> None:
    pk = signed_sample(calls, "tool:refund")
    sample, drawn = read_sample(calls, pk)
    assert (sample.state, sample.call_count, len(drawn)) == (SampleState.SIGNED, 10, 5)
    verdict = verified(sample_bundle(calls, pk, tmp_path))
    assert verdict.is_genuine and not verdict.is_undecided
    population = result_of(verdict, "population")
    assert population.startswith("verified: 10 calls, fixed when the ledger had")
    assert result_of(verdict, "selection") == "verified: the seed draws these 5 of 10 calls"
    assert "1 errors in 5 calls, at most" in result_of(verdict, "sign-offs")


def test_size_follows_from_confidence_and_rates(calls: Cast) -> None:
    rates: dict[str, Any] = {"confidence": "90", "tolerable": "20", "expected": "0"}
    sample, drawn = read_sample(calls, draw_sample(calls, size="", **rates))
    # If 4 of 20 calls are errors, 9 have none with a chance of C(16, 9) / C(20, 9): 7 %; 8: 10.2 %.
    assert (sample.call_count, sample.size, len(drawn)) == (20, 9, 9)


@pytest.mark.slow
def test_nonce_and_witness_leave_nothing_to_steer(
    calls: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLTRAIL_WITNESS_ALLOW", "127.0.0.1")
    monkeypatch.setattr(settings, "WITNESS_ALLOW", env.openings("TOOLTRAIL_WITNESS_ALLOW"))
    # No worker brings the newest checkpoint to the witness while a bundle waits for it.
    monkeypatch.setattr(bundling, "_WITNESS_WAIT_SECONDS", 0.0)
    tenant = calls.tenant
    sign_ledger(calls)
    with tenant_scope(tenant.id):
        newest = proofs.newest_checkpoint()
        assert newest is not None
        keys = [
            VerifierKey.parse(one.vkey) for one in proofs.public_keys(newest.origin, timezone.now())
        ]
    nonce = secrets.token_hex(32)
    with running_witness(tmp_path / "w1", keys, "w1.example") as witness:
        with tenant_scope(tenant.id):
            named = [{"url": witness.url, "key": str(witness.key)}]
            save_witnesses(calls.tenant, calls.admin, read_policy(1, named))
        pk = begin_sample(calls, "tool:refund", nonce)
        sign_ledger(calls)
        assert "too few witnesses signed" in page_of(calls, pk)
        post(calls, calls.auditor, "sample_witness", pk)
        assert bringing.bring(tenant.id, timezone.now() + bringing.EVERY) == 1
        assert "could steer" not in page_of(calls, pk)
        post(calls, calls.auditor, "sample_draw", pk, nonce=nonce)
        assert "could have steered" not in page_of(calls, pk)
        sign_ledger(calls)
        verdict = verified(sample_bundle(calls, pk, tmp_path), Policy.of([witness.key]))
    assert verdict.is_genuine, "\n".join(verdict.lines())
    assert "each on record before" in result_of(verdict, "seed")
    assert not any("steered" in each for each in verdict.limits)
    assert "nobody has signed; 5 calls" in result_of(verdict, "sign-offs")
    # Another witness of the auditor did not sign: then the operator could have steered it.
    with running_witness(tmp_path / "w2", keys, "w2.example") as other:
        doubted = verified(sample_bundle(calls, pk, tmp_path), Policy.of([other.key]))
    assert "too few of your witnesses" in result_of(doubted, "seed")


def test_without_a_nonce_the_result_says_that_it_could_be_steered(
    calls: Cast, tmp_path: Path
) -> None:
    pk = draw_sample(calls, nonce="")
    assert "could have steered which calls were drawn: no auditor committed" in page_of(calls, pk)
    sign_ledger(calls)
    verdict = verified(sample_bundle(calls, pk, tmp_path))
    assert "no nonce of an auditor is in the seed" in result_of(verdict, "seed")
    assert any("could have steered" in each and "no nonce" in each for each in verdict.limits)


@pytest.mark.slow
def test_sample_verifies_after_retention_and_erasure_of_a_part(acme: Cast, tmp_path: Path) -> None:
    arrive(acme, timezone.now() - timedelta(days=10), calls=6)
    for number in range(6):
        send_events(acme.tenant, make_call(case_id=f"case-{number}"))
    pk = signed_sample(acme, size=12)  # all of them
    before = verified(sample_bundle(acme, pk, tmp_path))
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    erase(acme, "case:case-3")
    sign_ledger(acme)
    _, calls = read_sample(acme, pk)
    (erased,) = [call for call in calls if call.is_erased]
    assert (erased.note, erased.exception, erased.salt) == ("", "", "")
    assert erased.conclusion and erased.texts
    verdict = verified(sample_bundle(acme, pk, tmp_path))
    assert verdict.erased == 14
    for name in ("population", "seed", "selection", "sign-offs"):
        assert result_of(verdict, name).split(";")[0] == result_of(before, name).split(";")[0]
    assert verdict.is_genuine and not verdict.is_undecided, "\n".join(verdict.lines())
    assert "The call was erased" in words(
        signed_in(acme.auditor)
        .get(reverse("sample_detail", args=[pk]), {"call": erased.position})
        .content.decode()
    )


def _call(number: int, **members: Any) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        document["calls"][number] |= members

    return edit


def _drop(document: dict[str, Any]) -> None:
    del document["calls"][0]


def _swap(document: dict[str, Any]) -> None:
    document["calls"][:2] = reversed(document["calls"][:2])


def _blank(document: dict[str, Any]) -> None:
    document["calls"][0] |= {"note": None, "exception": None, "salt": None}


def _defined(**members: Any) -> Edit:
    return lambda document: document["definition"].update(members)


EDITS: dict[str, tuple[str, Edit]] = {
    "another query": ("population", _defined(query="tool:other")),
    "another name": ("population", _defined(name="forged")),
    "another size": ("population", _defined(size=4)),
    "another nonce": ("seed", lambda document: document.update(nonce="0" * 64)),
    "no nonce": ("seed", lambda document: document.update(nonce="")),
    "another checkpoint": ("seed", lambda document: document.update(checkpoint_size=7)),
    "another root": ("seed", lambda document: document.update(checkpoint_root="A" * 43 + "=")),
    "a call fewer": ("selection", _drop),
    "another order": ("selection", _swap),
    "another call": ("selection", _call(0, index=3)),
    "another conclusion": ("sign-offs", _call(0, conclusion="unjudged")),
    "another note": ("sign-offs", _call(0, note="forged")),
    "no note": ("sign-offs", _blank),
    "another exception": ("sign-offs", _call(1, exception="nothing")),
    "a forged digest": ("sign-offs", _call(0, texts="0" * 64)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a signed sample."""
    from tests.support.factories import make_cast
    from tests.support.ledger_log import write_key

    folder = tmp_path_factory.mktemp("sample")
    cast = make_cast("sampled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "LEDGER_DIR", folder / "ledger")
        write_key(folder / "ledger", secrets.token_bytes(32))
        for number in range(20):
            send_events(cast.tenant, make_call(tool_name="refund" if number % 2 else "other"))
        return sample_bundle(cast, signed_sample(cast, "tool:refund"), folder)


def _altered(path: Path, folder: Path, **members: Callable[[bytes], bytes]) -> Path:
    altered = folder / "altered.zip"
    with ZipFile(path) as read, ZipFile(altered, "w") as written:
        for name in read.namelist():
            data = read.read(name)
            written.writestr(name, members.get(name.partition(".")[0], bytes)(data))
    return altered


@pytest.mark.parametrize("name", EDITS)
def test_each_alteration_of_the_file_is_found(name: str, made: Path, tmp_path: Path) -> None:
    check, edit = EDITS[name]

    def forge(data: bytes) -> bytes:
        document = json.loads(data)
        edit(document)
        return json.dumps(document).encode()

    verdict = verified(_altered(made, tmp_path, sample=forge))
    assert result_of(verdict, check).startswith("failed"), "\n".join(verdict.lines())


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data[40:],
        lambda data: data[:-40],
        lambda data: data[:-1],
        lambda data: data[40:80] + data[:40] + data[80:],
        lambda data: data[:39] + bytes([data[39] ^ 1]) + data[40:],
        lambda data: data[:40] + data,
    ],
)
def test_each_alteration_of_the_population_is_found(
    edit: Callable[[bytes], bytes], made: Path, tmp_path: Path
) -> None:
    verdict = verified(_altered(made, tmp_path, population=edit))
    assert result_of(verdict, "population").startswith("failed")


@pytest.mark.parametrize(
    ("verb", "check"),
    [
        ("sample.commit", "population"),
        ("sample.fix", "population"),
        ("sample.draw", "selection"),
        ("sample.conclude", "sign-offs"),
    ],
)
def test_entry_that_is_left_out_is_missed(
    verb: str, check: str, made: Path, tmp_path: Path
) -> None:
    def without(data: bytes) -> bytes:
        from tooltrail.ledger.lines import from_base64

        lines = data.splitlines(keepends=True)
        raws = [from_base64(json.loads(line)["raw"], "a line") for line in lines]
        return b"".join(
            line
            for line, raw in zip(lines, raws, strict=True)
            if f'"verb":"{verb}"'.encode() not in raw
        )

    verdict = verified(_altered(made, tmp_path, statements=without))
    assert result_of(verdict, check).startswith("failed"), "\n".join(verdict.lines())


@pytest.mark.slow
def test_bundle_without_the_second_signature_is_not_signed_off(calls: Cast, tmp_path: Path) -> None:
    pk = draw_sample(calls)
    conclude_all(calls, pk)
    post(calls, calls.auditor, "sample_sign", pk)
    answer = signed_in(calls.auditor).get(reverse("sample_evidence", args=[pk]))
    assert answer.status_code == 302, "the last entries are not signed"
    sign_ledger(calls)
    verdict = verified(sample_bundle(calls, pk, tmp_path))
    assert "alone; 1 errors in 5 calls" in result_of(verdict, "sign-offs")


def test_population_that_somebody_changed_is_not_drawn(calls: Cast) -> None:
    nonce = secrets.token_hex(32)
    pk = begin_sample(calls, "tool:refund", nonce)
    sign_ledger(calls)
    as_owner(
        "UPDATE audit_sample_part SET records = substr(records, 61) WHERE sample_id = %s", [pk]
    )
    answer = signed_in(calls.auditor).post(reverse("sample_draw", args=[pk]), {"nonce": nonce})
    assert answer.status_code == 422
    assert "not the one that was fixed" in answer.content.decode()


@pytest.mark.slow
def test_call_that_somebody_exchanged_is_found(calls: Cast, tmp_path: Path) -> None:
    pk = signed_sample(calls, "tool:refund")
    _, drawn = read_sample(calls, pk)
    path = sample_bundle(calls, pk, tmp_path)
    with ZipFile(path) as file:
        population = list(indexes_in(file.read("population.bin")))
    other = next(each for each in population if each not in {call.ledger_index for call in drawn})
    as_owner(
        "UPDATE audit_sample_call SET ledger_index = %s WHERE sample_id = %s AND position = 1",
        [other, pk],
    )
    verdict = verified(sample_bundle(calls, pk, tmp_path))
    assert result_of(verdict, "selection").startswith("failed")


def test_documented_program_repeats_the_draw(made: Path, tmp_path: Path) -> None:
    (tmp_path / "sample.zip").write_bytes(made.read_bytes())
    program = snippet("docs/sampling.md", "python")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "draws these 5 of 10 calls" in done.stdout
    altered = _altered(made, tmp_path, population=lambda data: data[40:])
    altered.rename(tmp_path / "sample.zip")
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False).returncode


@pytest.mark.slow
def test_draw_is_what_the_seed_says(calls: Cast, tmp_path: Path) -> None:
    pk = signed_sample(calls, "tool:refund")
    sample, drawn = read_sample(calls, pk)
    with ZipFile(sample_bundle(calls, pk, tmp_path)) as file:
        indexes = list(indexes_in(file.read("population.bin")))
    repeated = draw(bytes.fromhex(sample.seed), indexes, 5)
    assert repeated == [call.ledger_index for call in drawn]


@pytest.mark.slow
def test_only_the_committed_nonce_draws_and_only_once(calls: Cast) -> None:
    nonce = secrets.token_hex(32)
    pk = begin_sample(calls, "tool:refund", nonce)
    auditor, address = signed_in(calls.auditor), reverse("sample_draw", args=[pk])
    assert "No checkpoint has the entry" in auditor.post(address, {"nonce": nonce}).content.decode()
    sign_ledger(calls)
    for wrong in ("", "0" * 64, nonce.upper(), "x"):
        assert auditor.post(address, {"nonce": wrong}).status_code == 422
    assert auditor.post(address, {"nonce": nonce}).status_code == 302
    _, drawn = read_sample(calls, pk)
    assert auditor.post(address, {"nonce": nonce}).status_code == 422
    assert read_sample(calls, pk)[1] == drawn


def test_calls_that_arrive_later_are_not_in_the_population(
    calls: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is read in slices; a killed worker's next one continues, and later calls wait."""
    monkeypatch.setattr(collecting, "_AT_ONCE", 3)
    location = post(calls, calls.auditor, "sample_list", name="s", q="tool:refund", size=5)
    pk = read_sample(calls, location.rsplit("/", 1)[1])[0].id  # type: ignore[arg-type]  # a UUID
    slices = 0
    while collecting.run_slice(calls.tenant.id, pk, seconds=0):
        slices += 1
        send_events(calls.tenant, make_call(tool_name="refund"))
    assert slices >= 3
    sample, _ = read_sample(calls, pk)
    assert (sample.state, sample.call_count) == (SampleState.FIXED, 10)


def test_sample_can_be_stopped_and_stays_on_record(calls: Cast) -> None:
    location = post(calls, calls.auditor, "sample_list", name="s", q="", size=5)
    pk = read_sample(calls, location.rsplit("/", 1)[1])[0].id  # type: ignore[arg-type]  # a UUID
    post(calls, calls.auditor, "sample_cancel", pk)
    assert not collecting.run_slice(calls.tenant.id, pk)
    assert read_sample(calls, pk)[0].state == SampleState.CANCELLED
    assert "stopped" in words(signed_in(calls.auditor).get("/samples/").content.decode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"q": "tool:"}, "Nothing was searched"),
        ({"q": "arg.city:Bern"}, "Nothing was searched"),
        ({"size": ""}, "Enter the three rates"),
        ({"size": "", "confidence": 95, "tolerable": 5, "expected": 5}, "less than the tolerable"),
        ({"commitment": "ABC"}, "64 hexadecimal digits"),
        ({"name": ""}, "required"),
    ],
)
def test_sample_that_means_nothing_is_not_begun(
    calls: Cast, data: dict[str, Any], why: str
) -> None:
    answer = signed_in(calls.auditor).post("/samples/", {"name": "s", "q": "", "size": 5} | data)
    assert answer.status_code == 422
    assert why in words(answer.content.decode())


def test_population_without_calls_fails(calls: Cast) -> None:
    sample, _ = read_sample(calls, begin_sample(calls, "tool:nobody"))
    assert (sample.state, sample.problem) == (SampleState.FAILED, "No call matches.")


@pytest.mark.slow
def test_key_gets_the_bundle_of_a_sample(calls: Cast, globex: Cast, tmp_path: Path) -> None:
    pk = signed_sample(calls, "tool:refund")
    key = Program(calls.tenant, create_key(calls.tenant, "key", [Scope.PAYLOADS])[1])
    answer = key.send("GET", f"evidence?sample={pk}")
    path = tmp_path / "sample.zip"
    path.write_bytes(b"".join(answer.streaming_content))
    assert "prepared by" in result_of(verified(path), "sign-offs")
    other = Program(globex.tenant, create_key(globex.tenant, "key", [Scope.PAYLOADS])[1])
    for wrong in (pk, "x"):
        assert other.refused(f"evidence?sample={wrong}", method="GET") == (404, "not_found")
    late = begin_sample(calls)
    assert key.refused(f"evidence?sample={late}", method="GET") == (409, "unsigned")


@pytest.mark.slow
def test_two_people_must_sign_the_same_conclusions(calls: Cast) -> None:
    pk = draw_sample(calls)
    auditor = signed_in(calls.auditor)
    post(calls, calls.auditor, "sample_sign", pk)
    assert read_sample(calls, pk)[0].state == SampleState.DRAWN, "5 calls have no conclusion"
    without = {"conclusion": "exception", "exception": ""}
    address = reverse("sample_conclude", args=[pk, 1])
    assert auditor.post(address, without).status_code == 422
    conclude_all(calls, pk)
    post(calls, calls.auditor, "sample_sign", pk)
    post(calls, calls.auditor, "sample_sign", pk)
    sample, _ = read_sample(calls, pk)
    assert (sample.state, sample.reviewed_by) == (SampleState.PREPARED, "")
    assert auditor.post(address, {"conclusion": "pass"}).status_code == 422, "it is signed"
    reviewer = second_auditor(calls)
    post(calls, reviewer, "sample_return", pk, reason="look at call 1 again")
    post(calls, reviewer, "sample_conclude", pk, 1, conclusion="unjudged")
    post(calls, reviewer, "sample_sign", pk)
    post(calls, calls.auditor, "sample_sign", pk)
    sample, drawn = read_sample(calls, pk)
    assert sample.state == SampleState.SIGNED
    assert (sample.prepared_person, sample.reviewed_person) == (reviewer.pk, calls.auditor.pk)
    assert drawn[0].conclusion == "unjudged"
    assert auditor.post(address, {"conclusion": "pass"}).status_code == 422


@pytest.mark.slow
def test_returned_sample_verifies_with_its_last_signatures(calls: Cast, tmp_path: Path) -> None:
    pk = draw_sample(calls)
    conclude_all(calls, pk)
    post(calls, calls.auditor, "sample_sign", pk)
    reviewer = second_auditor(calls)
    post(calls, reviewer, "sample_return", pk, reason="again")
    post(calls, calls.auditor, "sample_conclude", pk, 1, conclusion="unjudged")
    post(calls, calls.auditor, "sample_sign", pk)
    post(calls, reviewer, "sample_sign", pk)
    sign_ledger(calls)
    verdict = verified(sample_bundle(calls, pk, tmp_path))
    assert "2 errors in 5 calls" in result_of(verdict, "sign-offs")
    assert verdict.is_genuine


@pytest.mark.slow
def test_keys_sign_for_their_owners_and_programs_do_not(calls: Cast) -> None:
    pk = draw_sample(calls)
    conclude_all(calls, pk)
    with tenant_scope(calls.tenant.id):
        robot = create_account(calls.tenant, calls.admin, "robot").user
    scopes = [Scope.SAMPLES]
    keys = {
        owner: create_key(calls.tenant, "key", scopes, created_by=owner)[1]
        for owner in (robot, calls.viewer, calls.editor, calls.auditor, calls.admin)
    }
    for owner in (robot, calls.viewer, calls.editor):
        refused = Program(calls.tenant, keys[owner]).refused(f"samples/{pk}/sign", {})
        assert refused == (403, "needs_person")
    # Whoever made a key for somebody else knows it.
    made = create_key(calls.tenant, "key", scopes, created_by=calls.admin, owner=calls.auditor)[1]
    assert Program(calls.tenant, made).refused(f"samples/{pk}/sign", {})[1] == "needs_person"
    post(calls, calls.auditor, "sample_sign", pk)
    assert Program(calls.tenant, keys[calls.auditor]).refused(f"samples/{pk}/sign", {})[0] == 409
    signed = Program(calls.tenant, keys[calls.admin]).do(f"samples/{pk}/sign", {})
    assert signed["state"] == "signed"
    assert [one["part"] for one in signed["signatures"]] == ["prepared", "reviewed"]
