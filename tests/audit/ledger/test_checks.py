"""Checks of a whole ledger: what passes, what is reported; cancelled and killed checks."""

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import call_command
from django.utils import timezone
from tooltrail.evidence.layout import COVERING
from tooltrail.ledger import Kind

from audit.ledger import checks
from audit.ledger.entries import append_entry
from audit.log.payload import pack, unpack
from audit.models import Batch, LedgerCheck
from audit.retention.event_removal import declare
from config.postgresql.aliases import KEEPER
from tenants.models import TenantSetting
from tenants.scope import tenant_scope
from tenants.slices import JobState
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import (
    append,
    as_owner,
    keep,
    leaves,
    own_folder,
)

NOW = timezone.now()
LATER = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def start(cast: Cast) -> LedgerCheck:
    with tenant_scope(cast.tenant.id):
        check = checks.start_check("auditor", NOW)
    assert check is not None
    return check


def run(cast: Cast) -> LedgerCheck:
    """Run a check to its end."""
    pk = start(cast).id
    while checks.run_slice(cast.tenant.id, pk):
        pass
    return reload(cast, pk)


def reload(cast: Cast, pk: UUID) -> LedgerCheck:
    with tenant_scope(cast.tenant.id):
        return LedgerCheck.objects.for_tenant(cast.tenant.id).get(id=pk)


def fill(cast: Cast, *, batches: int = 6, calls: int = 3) -> None:
    """Send batches of events; sign after each batch."""
    for minute in range(batches):
        send_events(cast.tenant, [event for _ in range(calls) for event in make_call()])
        keep(cast.tenant, NOW + minute * LATER)


@pytest.mark.slow
def test_check_passes_for_an_unaltered_ledger(acme: Cast) -> None:
    fill(acme, batches=45)
    check = run(acme)
    assert (check.state, check.findings) == (JobState.PASSED, [])
    assert (check.next_index, check.size, check.checkpoint_count) == (270, 270, 45)
    assert check.finished_at is not None


BYTES = "entry 12: the stored bytes do not match the hash"
OTHER = "SELECT payload FROM batch b WHERE b.tenant_id = batch.tenant_id AND b.first_index = 6"


@pytest.mark.slow
@pytest.mark.one_node
@pytest.mark.parametrize(
    ("tampering", "where", "finding"),
    [
        (f"UPDATE batch SET payload = ({OTHER})", "first_index = 12", BYTES),
        (
            "UPDATE batch SET payload = NULL",
            "first_index = 12",
            "entries 12 to 17: the payloads are missing, and no entry declares them erased",
        ),
        (
            "UPDATE batch SET payload = '\\x00'",
            "first_index = 12",
            "the payload of the batch at 12 cannot be decompressed",
        ),
        (
            "UPDATE batch SET leaves = sha256('x') || substring(leaves FROM 33)",
            "first_index = 12",
            BYTES,
        ),
        (
            "UPDATE batch SET received_at = received_at - interval '1 day'",
            "first_index = 12",
            BYTES,
        ),
        ("DELETE FROM batch", "first_index = 12", "a batch begins at 18 instead of 12"),
        ("DELETE FROM batch", "first_index = 30", "the log ends at 30, but its tiles at 36"),
        (
            "UPDATE batch SET event_count = 7",
            "first_index = 12",
            "the batch at 12 does not have one leaf per event",
        ),
        (
            "UPDATE ledger_tile SET hashes = sha256('x') || substring(hashes FROM 33)",
            "level = 0",
            "tile/0/000.p/36 does not match the leaves in the log",
        ),
        (
            "UPDATE ledger_checkpoint SET root = sha256('x')",
            "size = 18",
            "the checkpoint of 18 entries has a different root",
        ),
        (
            "UPDATE ledger_checkpoint SET note = replace(note, E'\\n18\\n', E'\\n19\\n')",
            "size = 18",
            "the checkpoint of 18 entries: the signature of",
        ),
    ],
)
def test_alteration_is_detected(acme: Cast, tampering: str, where: str, finding: str) -> None:
    fill(acme)
    statement = f"{tampering} WHERE tenant_id = %s AND {where}"
    assert as_owner(statement, [acme.tenant.id]) == 1
    check = run(acme)
    assert check.state == JobState.FAILED
    assert any(each.startswith(finding) for each in check.findings), check.findings


def test_leaf_rewritten_with_its_tile_is_detected_at_the_signed_root(acme: Cast) -> None:
    """An attacker can change bytes, leaf and tile, but not the signed roots."""
    append(acme.tenant, leaves(40))
    keep(acme.tenant, NOW)
    for table, column in (("batch", "leaves"), ("ledger_tile", "hashes")):
        as_owner(
            f"UPDATE {table} SET {column} = sha256('x') || substring({column} FROM 33)"
            " WHERE tenant_id = %s",
            [acme.tenant.id],
        )
    declare_erased(acme, Kind.RETENTION, [[0, 40]])
    check = run(acme)
    assert check.findings == ["the checkpoint of 40 entries has a different root"]


def declare_erased(cast: Cast, kind: Kind, ranges: list[list[int]]) -> None:
    """Append the entry that declares erased payloads."""
    if kind not in COVERING:
        with tenant_scope(cast.tenant.id):
            payload = {"ranges": ranges, "reason": "r", "actor": "a"}
            append_entry(cast.tenant.id, kind, payload, timezone.now())
        return
    runs = [(begin, end) for begin, end in ranges]
    with tenant_scope(cast.tenant.id, using=KEEPER):
        declare(cast.tenant.id, kind, runs, "r", "a", timezone.now(), using=KEEPER)


@pytest.mark.parametrize("kind", [Kind.RETENTION, Kind.ERASURE])
def test_declared_erasure_passes(acme: Cast, kind: Kind) -> None:
    fill(acme)
    scope = [acme.tenant.id]
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index < 12", scope)
    declare_erased(acme, kind, [[0, 5], [5, 12]])
    keep(acme.tenant, NOW + timedelta(hours=1))
    check = run(acme)
    assert (check.state, check.findings, check.erased_count) == (JobState.PASSED, [], 12)


def test_erasure_during_a_check_passes(acme: Cast) -> None:
    """The entry is behind the last one that the check reads."""
    fill(acme)
    pk = start(acme).id
    scope = [acme.tenant.id]
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index = 12", scope)
    declare_erased(acme, Kind.ERASURE, [[12, 18]])
    while checks.run_slice(acme.tenant.id, pk):
        pass
    assert reload(acme, pk).state == JobState.PASSED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "ranges", "finding"),
    [
        (
            Kind.ERASURE,
            [[0, 3], [4, 12]],
            "entry 3: the payload is missing, and no entry declares it erased",
        ),
        (
            Kind.HOLD,
            [[0, 12]],
            "entries 0 to 11: the payloads are missing, and no entry declares them erased",
        ),
        (
            Kind.RETENTION,
            [[20, 99]],
            "entries 0 to 11: the payloads are missing, and no entry declares them erased",
        ),
    ],
)
def test_undeclared_erasure_fails(
    acme: Cast, kind: Kind, ranges: list[list[int]], finding: str
) -> None:
    fill(acme)
    scope = [acme.tenant.id]
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index < 12", scope)
    declare_erased(acme, kind, ranges)
    with tenant_scope(acme.tenant.id):  # tables are no proof; the declaration in the ledger counts
        TenantSetting.objects.create(tenant=acme.tenant, erased_to=12)
    keep(acme.tenant, NOW + timedelta(hours=1))
    check = run(acme)
    assert (check.state, check.findings) == (JobState.FAILED, [finding])


@pytest.mark.slow
def test_erasure_entry_covers_no_later_entries(acme: Cast) -> None:
    fill(acme)
    declare_erased(acme, Kind.ERASURE, [[0, 99]])
    fill(acme, batches=1)
    scope = [acme.tenant.id]
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index = 37", scope)
    check = run(acme)
    assert check.findings == [
        "entries 37 to 42: the payloads are missing, and no entry declares them erased"
    ]


def test_altered_erasure_entry_covers_nothing(acme: Cast) -> None:
    fill(acme)
    declare_erased(acme, Kind.ERASURE, [[0, 1]])
    scope = [acme.tenant.id]
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index = 12", scope)
    with tenant_scope(acme.tenant.id):
        own = Batch.objects.for_tenant(acme.tenant.id).get(is_own=True)
    assert own.payload is not None
    ((salt, raw),) = unpack(bytes(own.payload))
    forged = pack([(salt, raw.replace(b"[[0,1]]", b"[[0,36]]"))])
    as_owner(
        "UPDATE batch SET payload = %s WHERE tenant_id = %s AND is_own", [forged, acme.tenant.id]
    )
    keep(acme.tenant, NOW + timedelta(hours=1))
    assert run(acme).findings == [
        "entry 36: the stored bytes do not match the hash",
        "entries 12 to 17: the payloads are missing, and no entry declares them erased",
        "entry 36: the list of erasures in the database does not say what it says",
    ]


@pytest.mark.slow
def test_many_findings_are_counted_and_the_first_are_kept(acme: Cast) -> None:
    for _ in range(30):
        append(acme.tenant, leaves(1))
        send_events(acme.tenant, make_call(is_open=True))
    keep(acme.tenant, NOW)
    check = run(acme)
    assert (check.finding_count, len(check.findings)) == (30, checks.FINDINGS_KEPT)


def test_only_one_check_runs_at_a_time_and_can_be_cancelled(acme: Cast) -> None:
    fill(acme)
    check = start(acme)
    with tenant_scope(acme.tenant.id):
        assert checks.start_check("auditor", NOW) is None
        assert checks.cancel_check(check.id, NOW)
        assert not checks.cancel_check(check.id, NOW)
    assert not checks.run_slice(acme.tenant.id, check.id)
    assert reload(acme, check.id).state == JobState.CANCELLED
    assert start(acme).next_index == 0


@pytest.mark.slow
def test_check_resumes_after_a_killed_worker(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(acme, batches=45)
    pk = start(acme).id
    assert checks.run_slice(acme.tenant.id, pk, seconds=0.0)
    read = reload(acme, pk).next_index
    assert 0 < read < 270

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(checks._Reading, "_compare_roots", killed)
        with pytest.raises(Killed):
            checks.run_slice(acme.tenant.id, pk)
    assert reload(acme, pk).next_index == read
    assert not checks.run_slice(acme.tenant.id, pk, seconds=60.0)
    check = reload(acme, pk)
    assert (check.state, check.checkpoint_count) == (JobState.PASSED, 45)


def test_empty_ledger_passes(acme: Cast) -> None:
    assert run(acme).state == JobState.PASSED


def test_check_of_another_tenant_is_not_run(acme: Cast, globex: Cast) -> None:
    pk = start(acme).id
    assert not checks.run_slice(globex.tenant.id, pk)
    assert reload(acme, pk).state == JobState.WAITING


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["kept entries", "lost entries"])
def test_checkpoints_of_an_earlier_epoch_are_checked(acme: Cast, lost: bool) -> None:
    for minute in range(2):
        send_events(acme.tenant, make_call())
        keep(acme.tenant, NOW + minute * LATER)
    if lost:
        as_owner("DELETE FROM batch WHERE tenant_id = %s AND first_index >= 2", [acme.tenant.id])
        as_owner("UPDATE ledger_head SET size = 2 WHERE tenant_id = %s", [acme.tenant.id])
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "disk", stdout=StringIO())
    keep(acme.tenant, NOW + 2 * LATER)
    assert run(acme).findings == []
    as_owner(
        "UPDATE ledger_checkpoint SET root = sha256('x') WHERE tenant_id = %s AND epoch = 0",
        [acme.tenant.id],
    )
    assert run(acme).findings == [
        f"the checkpoint of {size} entries has a different root" for size in (2, 4)
    ]
