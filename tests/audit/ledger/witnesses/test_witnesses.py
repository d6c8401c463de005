"""The worker brings checkpoints to witnesses, and everybody sees how they answer."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aics_tlog.note import parse_vkey
from aics_witness import LogConfig, WitnessStore, make_server
from aics_witness import Witness as OtherWitness
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from tooltrail.evidence import Archive, Policy, Verdict, verify
from tooltrail.ledger import SigningKey, VerifierKey, parse_note
from tooltrail.ledger.add_checkpoint import SIZE_TYPE
from tooltrail.ledger.cosignature import WitnessKey, cosign, cosigned_by
from tooltrail.ledger.timestamp import read_certificates

from audit.alerts import watching
from audit.alerts.rules import EventKind, Rule
from audit.alerts.stored import save_rule
from audit.evidence import bundling
from audit.evidence.bundling import Wanted, bundle
from audit.evidence.ledger_range import ledger_range_of
from audit.ledger import proofs
from audit.ledger.witnesses import bringing
from audit.ledger.witnesses.policy import WitnessError, read_policy
from audit.ledger.witnesses.states import WitnessStates, cosigned_notes, witness_states
from audit.models import Alert, LedgerCheckpoint, WitnessAnswer, WitnessOutcome
from audit.pages.settings import witnesses as witness_pages
from audit.pages.settings.acts import save_witnesses
from audit.queries.time_range import TimeRange
from config import env
from sdk.tests.support.time_authority import TimeAuthority, serving
from sdk.tests.support.witnesses import running_witness
from tenants.models import Tenant, new_id
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.hostile_witness import hostile_witness
from tests.support.ledger_log import give_key, keep
from tests.support.pages import signed_in, text

NOW = timezone.now()
ALL = TimeRange(NOW - timedelta(days=300), NOW + timedelta(days=1), UTC)
_LATER = iter(range(1, 10_000))


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker for this test, with a key of its own; witnesses may be on this machine."""
    give_key(monkeypatch, tmp_path)
    monkeypatch.setenv("TOOLTRAIL_WITNESS_ALLOW", "127.0.0.1")
    monkeypatch.setattr(settings, "WITNESS_ALLOW", env.openings("TOOLTRAIL_WITNESS_ALLOW"))


def grow(tenant: Tenant, calls: int = 1) -> LedgerCheckpoint:
    """Let calls arrive and the worker sign them; returns the checkpoint."""
    for _ in range(calls):
        send_events(tenant, make_call())
    keep(tenant, NOW + timedelta(minutes=next(_LATER)))
    with tenant_scope(tenant.id):
        newest = proofs.newest_checkpoint()
    assert newest is not None
    return newest


def log_keys(tenant: Tenant) -> list[VerifierKey]:
    """The public keys of the tenant's ledger, as its page names them."""
    with tenant_scope(tenant.id):
        newest = proofs.newest_checkpoint()
        assert newest is not None
        return [VerifierKey.parse(key.vkey) for key in proofs.public_keys(newest.origin, NOW)]


def name_witnesses(cast: Cast, needed: int, *witnesses: tuple[str, object]) -> None:
    """Set the tenant's witnesses: URL and key of each."""
    policy = read_policy(needed, [{"url": url, "key": str(key)} for url, key in witnesses])
    with tenant_scope(cast.tenant.id):
        save_witnesses(cast.tenant, cast.admin, policy)


def bring(tenant: Tenant, after: timedelta = timedelta(), size: int | None = None) -> int:
    return bringing.bring(tenant.id, timezone.now() + after, size)


def stand(tenant: Tenant) -> WitnessStates:
    with tenant_scope(tenant.id):
        return witness_states(tenant.id)


def problem(tenant: Tenant) -> tuple[str, str]:
    """The last answer of the only witness: outcome and reason."""
    (one,) = stand(tenant).each
    assert one.answered is not None
    return one.answered.outcome, one.answered.problem


def judged(tenant: Tenant, folder: Path, policy: Policy) -> Verdict:
    """The verdict on a bundle of all entries, with the public keys of the witnesses."""
    with tenant_scope(tenant.id):
        ledger_range = ledger_range_of(ALL)
    path = folder / "evidence.zip"
    path.write_bytes(b"".join(bundle(Wanted(tenant, ledger_range, ALL, "ada", NOW))))
    with Archive(path) as archive:
        return verify(archive, trusted=log_keys(tenant), policy=policy)


@contextmanager
def other_implementation(folder: Path, logs: list[VerifierKey]) -> Iterator[tuple[str, WitnessKey]]:
    """A witness that nobody here wrote: its URL and key."""
    private = Ed25519PrivateKey.generate()
    (origin,) = {key.name for key in logs}
    known = LogConfig(origin, tuple(parse_vkey(str(key)) for key in logs))
    with WitnessStore(folder / "other.db", create=True) as store:
        server = make_server(OtherWitness("other.example", private, store, [known]))
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            public = private.public_key().public_bytes_raw()
            yield server.url, WitnessKey("other.example", public)
        finally:
            server.shutdown()
            thread.join(60)
            server.server_close()


@pytest.mark.slow
def test_witnesses_vouch_for_a_growing_ledger(acme: Cast, tmp_path: Path) -> None:
    """Two of ours and one of another implementation; one of ours is stopped."""
    tenant = acme.tenant
    grow(tenant)
    with ExitStack() as stack:
        ours = [
            stack.enter_context(
                running_witness(tmp_path / name, log_keys(tenant), f"{name}.example")
            )
            for name in ("w1", "w2")
        ]
        url, key = stack.enter_context(other_implementation(tmp_path, log_keys(tenant)))
        keys = [*(one.key for one in ours), key]
        name_witnesses(acme, 2, *((one.url, one.key) for one in ours), (url, key))
        grow(tenant, 3)
        assert bring(tenant) == 3
        ours[1].process.kill()
        ours[1].process.wait(60)
        newest = grow(tenant, 20)
        assert bring(tenant) == 0, "not before an hour has passed"
        assert bring(tenant, bringing.EVERY) == 2
        stands = stand(tenant)
        assert stands.size == newest.size
        assert [one.size == newest.size for one in stands.each] == [True, False, True]
        assert [one.is_missing for one in stands.each] == [False, True, False]
        verdict = judged(tenant, tmp_path, Policy.of(keys, "2of3"))
        assert verdict.is_genuine and not verdict.is_undecided, "\n".join(verdict.lines())
        strict = judged(tenant, tmp_path, Policy.of(keys, "3of3"))
        assert strict.is_genuine and strict.is_undecided
        page = text(signed_in(acme.viewer).get("/ledger/").content.decode())
        assert f"{newest.size:,} by 2 of 3" in page
        assert "w2.example" in page and "silent" in page
        note = signed_in(acme.viewer).get(f"/ledger/checkpoints/0/{newest.size}").content
        body, signatures = parse_note(note)
        assert cosigned_by(body, signatures, keys).keys() == {keys[0], keys[2]}


@pytest.mark.slow
def test_two_installations_witness_each_other(
    acme: Cast, globex: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each runs a witness for the other's ledger."""
    for cast, host in ((acme, "one.example"), (globex, "two.example")):
        monkeypatch.setattr(settings, "LEDGER_HOST", host)
        grow(cast.tenant, 2)
    with (
        running_witness(tmp_path / "one", log_keys(globex.tenant), "one.example") as one,
        running_witness(tmp_path / "two", log_keys(acme.tenant), "two.example") as two,
    ):
        name_witnesses(acme, 1, (two.url, two.key))
        name_witnesses(globex, 1, (one.url, one.key))
        assert [bring(cast.tenant) for cast in (acme, globex)] == [1, 1]
        for cast, key in ((acme, two.key), (globex, one.key)):
            stands = stand(cast.tenant)
            with tenant_scope(cast.tenant.id):
                newest = proofs.newest_checkpoint()
            assert newest is not None
            assert stands.size == newest.size
            assert stands.each[0].key == str(key)


@pytest.mark.slow
def test_refusal_is_shown_and_alerts_until_it_is_over(acme: Cast, tmp_path: Path) -> None:
    tenant = acme.tenant
    grow(tenant)
    keys = log_keys(tenant)
    others = [VerifierKey("else.example", key.public) for key in keys]
    condition = {"on": "event", "event": EventKind.WITNESS_MISSING, "severity": "alert"}
    rule = Rule.model_validate({"name": "witnesses", "condition": condition})
    with tenant_scope(tenant.id):
        save_rule(tenant, acme.editor, rule, timezone.now())
    with running_witness(tmp_path / "w", others) as one:
        name_witnesses(acme, 1, (one.url, one.key))
        assert bring(tenant) == 0
    outcome, why = problem(tenant)
    assert (outcome, why) == ("refused", "It answered 404: this witness does not know the log")
    with tenant_scope(tenant.id):
        watching.watch(timezone.now())
        alert = Alert.objects.for_tenant(tenant.id).get()
    assert alert.title == (
        "witnesses: the witness witness.example/w1 refused: It answered 404: this witness does "
        "not know the log"
    )
    with running_witness(tmp_path / "w", keys) as one:
        name_witnesses(acme, 1, (one.url, one.key))
        assert grow(tenant).size, "recording and signing went on"
        assert bring(tenant, bringing.EVERY) == 1, problem(tenant)
    with tenant_scope(tenant.id):
        watching.watch(timezone.now())
        alert.refresh_from_db()
    assert alert.resolved_at is not None


@pytest.mark.slow
def test_ledger_that_lost_signed_entries_is_refused(acme: Cast) -> None:
    """A witness that has signed more than the ledger has is the alarm that everything is for."""
    checkpoint = grow(acme.tenant)
    with hostile_witness() as witness:
        name_witnesses(acme, 1, (witness.url, WitnessKey("w.example", bytes(32))))
        witness.status, witness.body = 409, b"5000\n"
        witness.headers = {"Content-Type": SIZE_TYPE}
        assert bring(acme.tenant) == 0
    why = f"It has signed 5,000 entries, and this ledger has {checkpoint.size:,}."
    assert problem(acme.tenant) == ("refused", why)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "body", "headers", "outcome", "why"),
    [
        (200, b"", {}, "refused", "no valid signature"),
        (200, b"\xff\xfe", {}, "refused", "no valid signature"),
        (200, "— w.example AAAAAAAA\n".encode(), {}, "refused", "no valid signature"),
        (200, b"x" * 2_000_000, {}, "silent", "too large"),
        (302, b"", {"Location": "http://127.0.0.1:1/"}, "refused", "It answered 302"),
        (403, b"<b>no</b>\x1b[31m\n\n", {}, "refused", "It answered 403: <b>no</b> [31m"),
        (409, b"x\n", {"Content-Type": SIZE_TYPE}, "refused", "its size"),
        (409, b"0\n", {"Content-Type": SIZE_TYPE}, "refused", "does not accept the size 0"),
        (409, b"another root", {}, "refused", "It answered 409: another root"),
        (429, b"later", {}, "silent", "It answered 429: later"),
        (500, b"", {}, "silent", "It answered 500:"),
    ],
)
def test_hostile_answers_are_told_apart(
    acme: Cast, status: int, body: bytes, headers: dict[str, str], outcome: str, why: str
) -> None:
    grow(acme.tenant)
    with hostile_witness() as witness:
        name_witnesses(acme, 1, (witness.url, WitnessKey("w.example", bytes(32))))
        witness.status, witness.body, witness.headers = status, body, headers
        assert bring(acme.tenant) == 0
    answered, problem_ = problem(acme.tenant)
    assert answered == outcome
    assert why in problem_
    page = signed_in(acme.viewer).get("/ledger/").content.decode()
    assert "<b>no</b>" not in page
    assert "too few" in page


@pytest.mark.slow
def test_wrong_size_is_corrected_once(acme: Cast) -> None:
    """A witness that knows an earlier size than we do gets the proof from there."""
    key = SigningKey("w.example", os.urandom(32))
    checkpoints = [grow(acme.tenant, 2), grow(acme.tenant, 5)]
    with hostile_witness() as witness:
        public = WitnessKey(key.name, key.verifier.public)
        name_witnesses(acme, 1, (witness.url, public))
        witness.status, witness.headers = 409, {"Content-Type": SIZE_TYPE}
        witness.body = f"{checkpoints[0].size}\n".encode()
        assert bring(acme.tenant) == 0
        sizes = [body.split(b"\n")[0] for body in witness.requests]
        assert sizes == [b"old 0", f"old {checkpoints[0].size}".encode()]
        body, _ = parse_note(checkpoints[1].note.encode())
        witness.status, witness.headers = 200, {}
        witness.body = b"garbage\n" + str(cosign(body, key, 1_795_780_800)).encode()
        assert bring(acme.tenant, bringing.EVERY) == 1
    assert stand(acme.tenant).size == checkpoints[1].size


@pytest.mark.slow
def test_only_opened_addresses_are_connected_to(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(acme.tenant)
    monkeypatch.setattr(settings, "WITNESS_ALLOW", ())
    with hostile_witness() as witness:
        for url in (witness.url, witness.url.replace("127.0.0.1", "localhost")):
            name_witnesses(acme, 1, (url, WitnessKey("w.example", bytes(32))))
            bring(acme.tenant, bringing.EVERY * next(_LATER))
            outcome, why = problem(acme.tenant)
            assert outcome == "silent"
            assert "does not allow this address" in why
        assert witness.requests == []


def test_bundle_lets_the_worker_ask_and_does_not_wait_for_ever(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = grow(acme.tenant)
    key = WitnessKey("w.example", bytes(32))
    name_witnesses(acme, 1, ("https://w.example", key))
    monkeypatch.setattr(bundling, "_WITNESS_WAITS", 1)
    monkeypatch.setattr(bundling, "_WITNESS_WAIT_SECONDS", 0.0)
    verdict = judged(acme.tenant, tmp_path, Policy.of([key]))
    assert verdict.is_genuine and verdict.is_undecided
    asked = ProcrastinateJob.objects.filter(
        task_name="audit.tasks.bring_checkpoint", args__tenant_id=str(acme.tenant.id)
    )
    assert {job.args["size"] for job in asked} == {None, checkpoint.size}


@pytest.mark.slow
def test_bundle_has_the_signatures_on_the_checkpoint_of_its_range(
    acme: Cast, tmp_path: Path
) -> None:
    """For a bundle the worker asks at once, whenever it asked last."""
    checkpoint = grow(acme.tenant)
    with running_witness(tmp_path / "w", log_keys(acme.tenant)) as one:
        name_witnesses(acme, 1, (one.url, one.key))
        assert bring(acme.tenant) == 1
        later = grow(acme.tenant)
        assert bring(acme.tenant, bringing.AT_LEAST, later.size) == 1
        assert bring(acme.tenant, bringing.AT_LEAST, later.size) == 0, "it has signed"
    assert later.size > checkpoint.size
    verdict = judged(acme.tenant, tmp_path, Policy.of([one.key]))
    assert verdict.is_genuine and not verdict.is_undecided, "\n".join(verdict.lines())


def test_forged_answer_in_the_database_deceives_no_verifier(acme: Cast, tmp_path: Path) -> None:
    checkpoint = grow(acme.tenant)
    key = SigningKey("w.example", os.urandom(32))
    public = WitnessKey(key.name, key.verifier.public)
    forged = cosign("another text\n", key, 1_795_780_800)
    with tenant_scope(acme.tenant.id):
        WitnessAnswer.objects.create(
            tenant_id=acme.tenant.id,
            id=new_id(),
            witness=str(public),
            epoch=0,
            size=checkpoint.size,
            at=NOW,
            outcome=WitnessOutcome.SIGNED,
            line=str(forged),
            problem="",
        )
    verdict = judged(acme.tenant, tmp_path, Policy.of([public]))
    assert not verdict.is_genuine
    assert "the signature of 'w.example' is wrong" in "\n".join(verdict.lines())


def test_notes_of_other_tenants_get_no_signatures(acme: Cast, globex: Cast) -> None:
    checkpoint = grow(acme.tenant)
    listed = [(0, checkpoint.size, checkpoint.note)]
    with tenant_scope(globex.tenant.id):
        assert cosigned_notes(globex.tenant.id, listed) == {(0, checkpoint.size): checkpoint.note}


W1 = {"url": "https://w1.example/", "key": str(WitnessKey("w1.example", bytes([1]) * 32))}
W2 = {"url": "https://w2.example", "key": str(WitnessKey("w2.example", bytes([2]) * 32))}


@pytest.mark.parametrize(
    ("needed", "witnesses", "why"),
    [
        (1, [W1 | {"url": "ftp://w1.example"}], "must begin with https://"),
        (1, [W1 | {"url": "https://user@w1.example"}], "must not contain a user"),
        (1, [W1 | {"url": "https://w1.example/?a=b"}], "must not contain a query"),
        (1, [W1 | {"url": "https://[w1"}], "not a URL"),
        (1, [W1 | {"url": "https://w1.example/é"}], "characters, encoded"),
        (1, [W1 | {"key": "no key"}], "must have the form name\\+id\\+key"),
        (1, [W1 | {"key": str(SigningKey("w", bytes(32)).verifier)}], "Ed25519 key of a witness"),
        (1, [W1, W1], "another witness has the same key"),
        (
            1,
            [W1, W2 | {"key": str(WitnessKey("w1.example", bytes([2]) * 32))}],
            "another witness has the same name",
        ),
        (3, [W1, W2], "3 of 2 witnesses cannot be required"),
        (0, [W1], "0 of 1 witnesses cannot be required"),
        (1, [], "1 of 0 witnesses cannot be required"),
        (1, [W1] * 11, "at most 10 witnesses"),
    ],
)
def test_policies_that_cannot_be_meant(needed: int, witnesses: list[Any], why: str) -> None:
    with pytest.raises(WitnessError, match=why):
        read_policy(needed, witnesses)


def test_page_saves_and_explains(acme: Cast) -> None:
    admin = signed_in(acme.admin)
    lines = f"{W1['url']} {W1['key']}\n{W2['url']} {W2['key']}"
    for wrong, why in (
        ({"witnesses": "https://w1.example", "needed": "1"}, "enter a URL, a space and a key"),
        ({"witnesses": lines, "needed": "3"}, "3 of 2 witnesses cannot be required"),
        ({"witnesses": lines.replace("w1.example+", "w9.example+"), "needed": "1"}, "Witness 1"),
    ):
        answer = admin.post("/settings/witnesses", wrong)
        assert answer.status_code == 200
        assert why in answer.content.decode()
    answer = admin.post("/settings/witnesses", {"witnesses": lines, "needed": "2"})
    assert answer.status_code == 302
    page = admin.get("/settings/witnesses").content.decode()
    assert "https://w1.example w1.example+" in page
    stands = stand(acme.tenant)
    assert (stands.policy.needed, stands.size) == (2, None)
    assert [one.answered for one in stands.each] == [None, None]
    assert "not asked yet" in signed_in(acme.viewer).get("/ledger/").content.decode()


def test_signature_of_an_earlier_epoch_does_not_vouch_for_this_one(acme: Cast) -> None:
    checkpoint = grow(acme.tenant)
    key = SigningKey("w.example", os.urandom(32))
    public = WitnessKey(key.name, key.verifier.public)
    name_witnesses(acme, 1, ("https://w.example", public))
    body, _ = parse_note(checkpoint.note.encode())
    with tenant_scope(acme.tenant.id):
        for epoch, is_enough in ((0, True), (1, False)):
            WitnessAnswer.objects.create(
                tenant_id=acme.tenant.id,
                id=new_id(),
                witness=str(public),
                epoch=epoch,
                size=checkpoint.size,
                at=NOW,
                outcome=WitnessOutcome.SIGNED,
                line=str(cosign(body, key, 1_795_780_800)),
                problem="",
            )
            assert (witness_states(acme.tenant.id).size is not None) is is_enough


@pytest.mark.slow
def test_time_authority_is_asked_once_a_day(acme: Cast, tmp_path: Path) -> None:
    authority = TimeAuthority(tmp_path / "authority")
    checkpoint = grow(acme.tenant)
    with serving(authority) as url:
        name_authority(acme, url)
        bring(acme.tenant)
        first = stand(acme.tenant).authority
        assert first is not None and first.answered is not None
        assert (first.size, first.answered.problem) == (checkpoint.size, "")
        later = grow(acme.tenant)
        bring(acme.tenant, bringing.EVERY * 30)
        second = stand(acme.tenant).authority
        assert second is not None and second.size == later.size
        answers = answers_of(acme.tenant)
        bring(acme.tenant, bringing.EVERY * 31)
        assert answers_of(acme.tenant) == answers, "it has a token of the newest checkpoint"
    page = text(signed_in(acme.viewer).get("/ledger/").content.decode())
    assert "127.0.0.1 time" in page
    with tenant_scope(acme.tenant.id):
        ledger_range = ledger_range_of(ALL)
    path = tmp_path / "evidence.zip"
    path.write_bytes(b"".join(bundle(Wanted(acme.tenant, ledger_range, ALL, "ada", NOW))))
    trusted = read_certificates(authority.ca.read_bytes())
    with Archive(path) as archive:
        verdict = verify(archive, trusted=log_keys(acme.tenant), authorities=trusted)
    assert verdict.is_genuine and not verdict.is_undecided, "\n".join(verdict.lines())
    (token,) = [
        each.signature
        for each in parse_note(noted(acme, later).encode())[1]
        if each.name == "127.0.0.1"
    ]
    assert authority.accepts(token, parse_note(later.note.encode())[0].encode())


@pytest.mark.slow
def test_time_authority_that_gives_no_token_is_shown(acme: Cast) -> None:
    grow(acme.tenant)
    with hostile_witness() as server:
        name_authority(acme, server.url)
        for hours, status, body, outcome, why in (
            (0, 503, b"later", "silent", "It answered 503: later"),
            (1, 200, b"<html>", "refused", "No token: not an answer of RFC 3161"),
        ):
            server.status, server.body = status, body
            bring(acme.tenant, hours * bringing.EVERY)
            one = stand(acme.tenant).authority
            assert one is not None and one.answered is not None and one.is_missing
            assert one.answered.outcome == outcome
            assert why in one.answered.problem
            assert one.size is None


def test_time_authority_needs_the_extra(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = signed_in(acme.admin)
    given = {"witnesses": "", "needed": "0", "timestamp_url": "https://time.example/tsr"}
    assert admin.post("/settings/witnesses", given).status_code == 302
    assert "https://time.example/tsr" in admin.get("/settings/witnesses").content.decode()
    wrong = admin.post("/settings/witnesses", given | {"timestamp_url": "time.example"})
    assert "must begin with https://" in wrong.content.decode()
    monkeypatch.setattr(witness_pages, "can_ask_authorities", lambda: False)
    refused = admin.post("/settings/witnesses", given)
    assert "The extra timestamp is not installed" in refused.content.decode()


def name_authority(cast: Cast, url: str) -> None:
    """Set the tenant's time authority, and no witness."""
    with tenant_scope(cast.tenant.id):
        save_witnesses(cast.tenant, cast.admin, read_policy(0, [], url))


def answers_of(tenant: Tenant) -> int:
    with tenant_scope(tenant.id):
        return WitnessAnswer.objects.for_tenant(tenant.id).count()


def noted(cast: Cast, checkpoint: LedgerCheckpoint) -> str:
    """A checkpoint's note with all lines below."""
    listed = [(checkpoint.epoch, checkpoint.size, checkpoint.note)]
    with tenant_scope(cast.tenant.id):
        (note,) = cosigned_notes(cast.tenant.id, listed).values()
    return note
