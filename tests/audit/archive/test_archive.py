"""The archive: sealed days in real storage, read and proved without the database."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZipFile

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.alerts.rules import EventKind, Rule
from audit.alerts.stored import save_rule
from audit.alerts.watching import watch
from audit.archive import archiving
from audit.archive.archives import begin_archive, stop_archive
from audit.archive.facts import facts_of, parquet_of
from audit.archive.layout import FACTS, ArchiveError, pack_name, record_name
from audit.archive.packs import unseal
from audit.archive.reading import archived_events, find_record
from audit.archive.storage import opened
from audit.ledger.actions import enter_all_actions
from audit.models import Alert, Archive, Invocation
from audit.queries import all_tenants
from audit.queries.all_tenants import read_all_tenants
from audit.retention.archived_calls import expire_archived
from audit.retention.holds import Covered, set_hold
from audit.tasks import archives as tasks
from config.boxes import BoxError
from config.http.bucket import BucketError, Version
from tenants.deletion import delete_tenant
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.archives import (
    all_bytes,
    archive_all,
    begin,
    bundle_of,
    export_without_database,
    make_buckets,
    packs_of,
    read_archive,
    segments_of,
    send_two_days,
    sign_all,
    time_goes_on,
    use_buckets,
    verify,
)
from tests.support.erasures import (
    confirm_erasure,
    erase,
    preview_erasure,
    read_erasure,
    run_erasure,
)
from tests.support.factories import Cast
from tests.support.legal_holds import event_texts
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool
from tests.support.retention import apply_retention, recorded_actions, set_retention
from tests.support.s3.storage import allowed_here, open_bucket, s3_storage

pytestmark = [pytest.mark.slow, pytest.mark.sampled("archive", 2)]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_storage() as running:
        yield running


@pytest.fixture
def name(endpoint: str, monkeypatch: pytest.MonkeyPatch, acme: Cast) -> str:
    """The bucket of the records; the other one has `-keys` behind."""
    bucket = f"archive-{acme.tenant.id.hex[-12:]}"
    make_buckets(endpoint, bucket)
    use_buckets(monkeypatch, endpoint, bucket)
    return bucket


@contextmanager
def no_database() -> Iterator[None]:
    """Whoever queries the database fails."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the database is gone")

    with connections["default"].execute_wrapper(refuse):
        yield


def events_in(bundle: Path) -> bytes:
    with ZipFile(bundle) as file:
        names = [each for each in file.namelist() if each.startswith("events/")]
        return b"".join(file.read(each) for each in names)


def unlocked_delete(endpoint: str, name: str, place: str) -> None:
    bucket = open_bucket(endpoint, name, allowed_here())
    try:
        bucket.delete(Version(*place.split()))
    finally:
        bucket.close()


def dies_at_the_record(data: bytes = b"") -> Any:
    if data.startswith(b"PK"):
        raise KeyboardInterrupt
    return sha256(data)


def facts_in(cast: Cast, segment: tuple[int, int]) -> list[dict[str, Any]]:
    with opened() as storage:
        return facts_of_file(storage.get(cast.tenant.id, segment, FACTS))


def facts_of_file(data: bytes | None) -> list[dict[str, Any]]:
    from pyarrow.parquet import read_table

    assert data is not None
    rows: list[dict[str, Any]] = read_table(io.BytesIO(data)).to_pylist()
    return rows


def api(cast: Cast, path: str, scope: Scope) -> tuple[int, dict[str, Any]]:
    """Status and document of an answer to a new key that has this scope, too."""
    key = create_key(cast.tenant, "a program", sorted({Scope.READ, scope}))[1]
    answer = Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {key}"})
    return answer.status_code, answer.json()


def call_only_archived(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Invocation:
    """The call of case `mine` of two archived days, when retention has removed all payloads."""
    begin(cast)
    send_two_days(cast, monkeypatch)
    archive_all(cast)
    set_retention(cast, payload_days=1)
    with time_goes_on(monkeypatch, timedelta(days=9)):
        apply_retention(cast)
    with tenant_scope(cast.tenant.id):
        return Invocation.objects.for_tenant(cast.tenant.id).get(case_id="mine")


def call(*arguments: str) -> str:
    out = io.StringIO()
    call_command("archive", *arguments, stdout=out)
    return out.getvalue()


def test_two_days_are_read_and_proved_without_the_database(
    acme: Cast, endpoint: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(acme)
    register_tool(acme)  # versions of tools are not archived
    enter_all_actions(acme.tenant.id)
    send_two_days(acme, monkeypatch)
    archive = archive_all(acme)
    assert not archive.failure
    assert [segment.payload_count for segment in segments_of(acme)] == [4, 6]
    assert len({segment.day for segment in segments_of(acme)}) == 2
    bundle = export_without_database(acme.tenant.slug, tmp_path / "bundle.zip")
    verdict = verify(bundle)
    assert verdict["genuine"], verdict
    assert verdict["erased"] == 0
    assert b"swordfish" in events_in(bundle)
    stored = all_bytes(endpoint, name)
    assert not any(b"swordfish" in data or b"mine" in data for data in stored.values())
    with pytest.raises(BucketError, match=r"40[03]"):  # the lock of a record
        unlocked_delete(endpoint, name, next(iter(stored)))


def test_what_retention_removed_is_read_from_the_archive(
    acme: Cast, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_only_archived(acme, monkeypatch)
    assert not any(event_texts(acme))
    archive_all(acme, days=12)
    verdict = verify(bundle_of(acme.tenant.id, tmp_path / "bundle.zip"))
    assert verdict["genuine"] and verdict["erased"] == 0, verdict
    assert b"swordfish" in archived_events(acme.tenant.id, [0])[0]
    with tenant_scope(acme.tenant.id):
        begin_archive(acme.tenant, "operator", 5)
    assert not expire_archived(acme.tenant.id, timezone.now() + timedelta(days=5))
    while expire_archived(acme.tenant.id, timezone.now() + timedelta(days=20)):
        pass
    assert not archived_events(acme.tenant.id, range(10))
    verdict = verify(bundle_of(acme.tenant.id, tmp_path / "bundle.zip"))
    assert verdict["genuine"] and verdict["erased"] == 10, verdict


@pytest.mark.parametrize("is_gone", [False, True], ids=["in the log", "removed by retention"])
def test_an_erased_call_has_no_key_in_any_version(
    acme: Cast,
    endpoint: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_gone: bool,
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    archive_all(acme)
    before = all_bytes(endpoint, f"{name}-keys")
    if is_gone:
        set_retention(acme, payload_days=1)
        with time_goes_on(monkeypatch, timedelta(days=9)):
            apply_retention(acme)
        with tenant_scope(acme.tenant.id):  # what is archived is erased all the same
            assert stop_archive(acme.tenant, "operator")
    erasure = erase(acme)
    assert erasure.state == "done", erasure.problem
    assert set(archived_events(acme.tenant.id, range(4))) == {2, 3}
    after = all_bytes(endpoint, f"{name}-keys")
    assert len({key.split()[0] for key in after}) == len(after) == len(before)
    assert not set(after) >= set(before)
    archive_all(acme)
    assert read_archive(acme).at_once_to is None
    bundle = bundle_of(acme.tenant.id, tmp_path / "bundle.zip")
    verdict = verify(bundle)
    assert verdict["genuine"] and verdict["erased"] == 2, verdict
    assert b"swordfish" not in events_in(bundle)
    actions = recorded_actions(acme, "archive.erase")
    assert [one["keys"] for one in actions] == [2]


def test_a_preview_counts_what_is_only_in_the_archive(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_only_archived(acme, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(settings, "ARCHIVE_ALLOW", ())
        with pytest.raises(BucketError, match="does not allow"):
            preview_erasure(acme)
    one = preview_erasure(acme)
    assert (one.state, one.call_count, one.event_count) == ("counted", 1, 2), one.problem
    size = sum(len(raw) for raw in archived_events(acme.tenant.id, [0, 1]).values())
    assert one.byte_count == size > 0
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    done = read_erasure(acme, one.id)
    assert (done.erased_events, done.erased_bytes) == (2, size)
    assert preview_erasure(acme).event_count == 0  # the keys are gone


def test_a_preview_counts_once_what_is_in_log_and_archive(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    archive_all(acme)
    done = erase(acme)
    assert (done.event_count, done.erased_events) == (2, 2)


def test_a_hold_protects_what_is_only_in_the_archive(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_only_archived(acme, monkeypatch)
    one = preview_erasure(acme)
    with tenant_scope(acme.tenant.id):
        set_hold(
            acme.tenant, acme.admin, "court", "asked to", Covered(case_id="mine"), timezone.now()
        )
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    assert set(archived_events(acme.tenant.id, range(4))) == {0, 1, 2, 3}


def test_a_deleted_tenant_leaves_nothing_that_can_be_read(
    acme: Cast, endpoint: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    archive_all(acme)
    with time_goes_on(monkeypatch, timedelta(hours=1)):  # the last checkpoint is a minute old
        acme.tenant.suspended_at = timezone.now() - timedelta(minutes=1)
        delete_tenant(acme.tenant, "operator", lambda done, size: None)
    assert all_bytes(endpoint, f"{name}-keys") == {}
    with no_database():
        bundle = bundle_of(acme.tenant.id, tmp_path / "bundle.zip")
    verdict = verify(bundle)
    assert verdict["genuine"] and verdict["erased"] == 10, verdict
    assert b"toolExecution" not in events_in(bundle)


def test_a_worker_that_died_is_followed_by_one_that_writes_the_same(
    acme: Cast, endpoint: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    sign_all(acme.tenant)
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "sha256", dies_at_the_record)
        with pytest.raises(KeyboardInterrupt):
            archiving.run_slice(acme.tenant.id, timezone.now() + timedelta(days=4))
    assert len(all_bytes(endpoint, f"{name}-keys")) == 2
    assert read_archive(acme).end_index == 4
    assert archive_all(acme).next_index == 0  # somebody still holds the claim
    with tenant_scope(acme.tenant.id):
        Archive.objects.for_tenant(acme.tenant.id).update(claimed_until=timezone.now())
    assert archive_all(acme).next_index == 11
    assert len(all_bytes(endpoint, f"{name}-keys")) == 4
    assert verify(bundle_of(acme.tenant.id, tmp_path / "bundle.zip"))["erased"] == 0


def test_storage_that_was_away_gets_everything(
    acme: Cast, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    with monkeypatch.context() as patch:
        use_buckets(patch, endpoint, "not-there")
        assert "404" in archive_all(acme).failure
        use_buckets(patch, endpoint, name)
        patch.setattr(settings, "ARCHIVE_KEYS_URL", settings.ARCHIVE_URL)
        assert "no key could be destroyed" in archive_all(acme).failure
        patch.setattr(settings, "ARCHIVE_ALLOW", ())
        assert "does not allow" in archive_all(acme).failure
    archive = archive_all(acme)
    assert archive.next_index == 11 and archive.failing_since is None
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    with monkeypatch.context() as patch:
        patch.setattr(settings, "ARCHIVE_ALLOW", ())
        with pytest.raises(BucketError, match="does not allow"):
            run_erasure(acme, one.id)
        waiting = read_erasure(acme, one.id)
        assert waiting.state == "erasing" and waiting.problem.startswith("It waits for the archive")
    run_erasure(acme, one.id)
    ended = read_erasure(acme, one.id)
    assert (ended.state, ended.problem) == ("done", "")
    assert set(archived_events(acme.tenant.id, range(4))) == {2, 3}


def test_an_archive_that_fails_or_is_behind_is_told(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_tenants, "_tenant_ids", lambda: [acme.tenant.id])
    begin(acme)
    send_two_days(acme, monkeypatch)
    condition = {"on": "event", "event": EventKind.ARCHIVE_BEHIND, "severity": "warning"}
    rule = Rule.model_validate({"name": "Archive", "condition": condition})
    now = timezone.now()
    with tenant_scope(acme.tenant.id):
        save_rule(acme.tenant, acme.editor, rule, now)

    def alerts(after: timedelta) -> list[Alert]:
        with tenant_scope(acme.tenant.id):
            watch(now + after)
            return list(Alert.objects.for_tenant(acme.tenant.id).order_by("opened_at"))

    behind = read_all_tenants(now + timedelta(days=3))
    assert (behind.archives_failing, behind.archive_behind_s > 24 * 3600) == (0, True)
    assert alerts(timedelta()) == []
    with monkeypatch.context() as patch:
        patch.setattr(settings, "ARCHIVE_ALLOW", ())
        archive_all(acme)
    assert read_all_tenants(now).archives_failing == 1
    assert alerts(timedelta(minutes=50)) == []
    (failing,) = alerts(timedelta(minutes=70))
    assert "entries of the ledger are not archived: The operator does not" in failing.title
    assert failing.held_to is None
    with tenant_scope(acme.tenant.id):
        Archive.objects.for_tenant(acme.tenant.id).update(next_attempt_at=timezone.now())
    assert archive_all(acme).failure == ""
    assert [one.held_to is None for one in alerts(timedelta(minutes=80))] == [False]
    assert read_all_tenants(now).archives_failing == 0
    enter_all_actions(acme.tenant.id)
    assert len(alerts(timedelta(days=9))) == 2  # the entry of the last segment waits for days
    with tenant_scope(acme.tenant.id):
        assert stop_archive(acme.tenant, "operator")
    assert all(one.held_to is not None for one in alerts(timedelta(days=9, minutes=1)))


def test_what_was_altered_or_has_other_keys_is_not_read(
    acme: Cast, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    archive_all(acme)
    with monkeypatch.context() as patch:
        patch.setattr(settings, "ENCRYPTION_KEYS", tmp_path / "other-keys")
        with pytest.raises(BoxError, match="key that this machine does not have"):
            archived_events(acme.tenant.id, [0])
    (pack,) = packs_of(acme)
    with opened() as storage:
        storage.put(acme.tenant.id, (0, 4), pack_name(pack), b"\0" * 16, timezone.now())
    with pytest.raises(ArchiveError, match="not the one that its record names"):
        archived_events(acme.tenant.id, [0])


def test_a_tenant_never_reads_another_ones(
    acme: Cast, globex: Cast, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cast in (acme, globex):
        begin(cast)
        send_two_days(cast, monkeypatch)
        archive_all(cast)
    (pack,), record = packs_of(globex), bytes(segments_of(globex)[0].record_sha256)
    with opened() as storage:
        sealed = storage.get(globex.tenant.id, (0, 4), pack_name(pack))
        keys = storage.get_keys(globex.tenant.id, pack)
        with pytest.raises(ArchiveError, match="altered"):
            unseal(acme.tenant.id, 0, sealed, keys)
        data = storage.get(globex.tenant.id, (0, 4), record_name(record))
        own = record_name(bytes(segments_of(acme)[0].record_sha256))
        storage.put(acme.tenant.id, (0, 4), record_name(record), data, timezone.now())
        with pytest.raises(ArchiveError, match="not where it says"):
            find_record(storage, acme.tenant.id, (0, 4))
        storage.put(acme.tenant.id, (0, 4), own, data, timezone.now())
    with pytest.raises(ArchiveError, match="was altered"):
        archived_events(acme.tenant.id, [0])


def test_pages_read_what_only_the_archive_has(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_only_archived(acme, monkeypatch)
    address = reverse("call_detail", args=[call.started_on, call.invocation_id])
    viewer, admin = signed_in(acme.viewer), signed_in(acme.admin)
    assert "from=archive" not in viewer.get(address).content.decode()
    assert "swordfish" not in viewer.get(f"{address}?from=archive").content.decode()
    shown = admin.get(address).content.decode()
    assert "from=archive" in shown and "swordfish" not in shown
    read = admin.get(f"{address}?from=archive").content.decode()
    assert "swordfish" in read and "Read from the archive" in read
    assert [one.get("archived") for one in recorded_actions(acme, "call.view")] == [None, True]
    raw = reverse("call_event", args=[call.started_on, call.invocation_id, "start"])
    assert f"{raw}?from=archive" in read and f"{raw}?from=archive" not in shown
    assert admin.get(raw).status_code == 404
    assert "swordfish" in admin.get(f"{raw}?from=archive").content.decode()
    assert viewer.get(f"{raw}?from=archive").status_code == 403
    assert [one.get("archived") for one in recorded_actions(acme, "call.raw")] == [True]
    with monkeypatch.context() as patch:
        patch.setattr(settings, "ARCHIVE_ALLOW", ())
        assert "does not allow" in admin.get(f"{address}?from=archive").content.decode()
        assert admin.get(f"{raw}?from=archive").status_code == 404
    page = admin.get(reverse("tenant_settings")).content.decode()
    assert "11 of " in page and "can be read for ever" in " ".join(page.split())
    state = api(acme, "settings", Scope.ADMIN)[1]["archive"]
    assert state["archived"] == 11 and state["state"] == "current"


def test_the_panel_beside_a_trace_reads_what_only_the_archive_has(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_only_archived(acme, monkeypatch)
    admin = signed_in(acme.admin)
    trace = reverse("trace_detail", args=[call.trace_id])
    beside = admin.get(trace, {"call": str(call.invocation_id)}).content.decode()
    link = f"{reverse('call_detail', args=[call.started_on, call.invocation_id])}?from=archive"
    assert f'hx-get="{link}"' in beside and "swordfish" not in beside
    answer = admin.get(link, headers={"HX-Request": "true", "HX-Target": "call-panel"})
    panel = answer.content.decode()
    assert panel.strip().startswith("<section") and "swordfish" in panel
    assert "Read from the archive" in panel


def test_the_api_reads_what_only_the_archive_has(
    acme: Cast, globex: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_only_archived(acme, monkeypatch)
    address = f"calls/{call.invocation_id}"
    assert api(globex, f"{address}?archive=true", Scope.PAYLOADS)[0] == 404
    for scope in (Scope.READ, Scope.ADMIN):  # neither sees payloads
        withheld = api(acme, f"{address}?archive=true", scope)[1]
        assert withheld["archive"] is None and withheld["start"]["event"] is None
    assert not recorded_actions(acme, "call.view")
    in_log = api(acme, address, Scope.PAYLOADS)[1]
    assert in_log["archive"] == "available" and in_log["start"]["event"] is None
    read = api(acme, f"{address}?archive=true", Scope.PAYLOADS)[1]
    assert read["archive"] == "read" and read["archive_error"] is None
    assert read["start"]["event"]["args"] == {"secret": "swordfish"}
    assert read["end"]["event"]["invocation_id"] == str(call.invocation_id)
    assert [one["archived"] for one in recorded_actions(acme, "call.view")] == [True]
    body = {"reason": "a complaint", "archive": True}
    revealed = program(acme.tenant, Scope.REVEAL).do(f"{address}/reveal", body)
    assert revealed["start"]["event"]["args"] == {"secret": "swordfish"}
    assert [one["archived"] for one in recorded_actions(acme, "call.view")] == [True, True]
    monkeypatch.setattr(settings, "ARCHIVE_ALLOW", ())
    failed = api(acme, f"{address}?archive=true", Scope.PAYLOADS)[1]
    assert failed["archive"] == "failed" and "does not allow" in failed["archive_error"]


def test_facts_are_what_an_erasure_leaves(
    acme: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    begin(acme)
    send_two_days(acme, monkeypatch)
    archive_all(acme)
    before = facts_in(acme, (0, 4))
    assert len(before) == 2
    erase(acme)
    ids = [row["invocation_id"] for row in before]
    with tenant_scope(acme.tenant.id):
        today = timezone.now().date()
        facts = facts_of([UUID(one) for one in ids], today, today)
    assert facts_of_file(parquet_of(facts)) == before


def test_commands(acme: Cast, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slug = acme.tenant.slug
    call("begin", slug, "--payload-days", "30")
    send_two_days(acme, monkeypatch)
    assert "0 entries are archived" in call("run", slug)
    sign_all(acme.tenant)
    with time_goes_on(monkeypatch, timedelta(days=4)):
        tasks.keep_archives(0)
        for _ in range(2):
            tasks.archive(str(acme.tenant.id))
    assert json.loads(call("status", "--json"))[slug]["archived"] == 10
    with no_database():
        call(
            "export", slug, "--until", f"{timezone.now():%Y-%m-%d}", "--to", str(tmp_path / "a.zip")
        )
    assert verify(tmp_path / "a.zip")["genuine"]
    with pytest.raises(CommandError, match="No archived tenant"):
        call("export", "nobody", "--to", str(tmp_path / "b.zip"))
    assert not list(tmp_path.glob("b.zip*"))
    assert "nothing more is archived" in call("stop", slug)
    verbs = ("archive.begin", "archive.segment", "archive.stop")
    assert [len(recorded_actions(acme, verb)) for verb in verbs] == [1, 2, 1]
