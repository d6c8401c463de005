"""The archive in Ceph's S3, which checks each signature: object lock, versions, destroyed keys."""

from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from audit.archive.archiving import run_slice
from audit.archive.layout import FACTS
from audit.archive.reading import archived_events
from audit.archive.storage import opened
from config.http.bucket import BucketError, NoObjectError, Version
from tests.support.archives import (
    all_bytes,
    archive_all,
    begin,
    bundle_of,
    export_without_database,
    make_buckets,
    read_archive,
    segments_of,
    send_two_days,
    time_goes_on,
    use_buckets,
    verify,
)
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, send_events
from tests.support.s3.radosgw import ceph_gateway
from tests.support.s3.storage import allowed_here, open_bucket

pytestmark = [pytest.mark.slow, pytest.mark.sampled("Ceph", 0)]  # 300 MB of packages


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ceph_gateway(tmp_path_factory.mktemp("ceph")) as running:
        yield running


@pytest.fixture
def name(endpoint: str, monkeypatch: pytest.MonkeyPatch, acme: Cast) -> str:
    """The bucket of the records; the other one has `-keys` behind."""
    bucket = f"archive-{acme.tenant.id.hex[-12:]}"
    make_buckets(endpoint, bucket)
    use_buckets(monkeypatch, endpoint, bucket)
    return bucket


def archive_two_days(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archive calls of today, of case `mine` one of them, and of another day."""
    begin(cast)
    send_two_days(cast, monkeypatch)
    assert archive_all(cast).failure == ""


def versions_in(endpoint: str, name: str) -> list[Version]:
    bucket = open_bucket(endpoint, name, allowed_here())
    try:
        return bucket.versions("")
    finally:
        bucket.close()


@pytest.mark.parametrize("mode", ["governance", "compliance"])
def test_nobody_deletes_a_locked_version(
    acme: Cast,
    endpoint: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.setattr(settings, "ARCHIVE_LOCK", mode)
    archive_two_days(acme, monkeypatch)
    assert [segment.payload_count for segment in segments_of(acme)] == [4, 6]
    verdict = verify(export_without_database(acme.tenant.slug, tmp_path / "bundle.zip"))
    assert verdict["genuine"] and verdict["erased"] == 0, verdict
    stored = versions_in(endpoint, name)
    # Of each segment the record and a pack, and the facts with the extra `parquet`.
    assert len(stored) == (4 if find_spec("pyarrow") is None else 6)
    bucket = open_bucket(endpoint, name, allowed_here())
    try:
        for version in stored:
            with pytest.raises(BucketError, match="403"):
                bucket.delete(version)
        assert bucket.versions("") == stored
    finally:
        bucket.close()


def test_an_erased_call_has_no_key_in_any_version(
    acme: Cast, endpoint: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_two_days(acme, monkeypatch)
    before = all_bytes(endpoint, f"{name}-keys")
    erasure = erase(acme)
    assert erasure.state == "done", erasure.problem
    after = all_bytes(endpoint, f"{name}-keys")
    assert len({key.split()[0] for key in after}) == len(after) == len(before) == 4
    assert len(set(after) & set(before)) == 2  # the other day's
    assert set(archived_events(acme.tenant.id, range(4))) == {2, 3}
    archive_all(acme)
    assert read_archive(acme).at_once_to is None
    verdict = verify(bundle_of(acme.tenant.id, tmp_path / "bundle.zip"))
    assert verdict["genuine"] and verdict["erased"] == 2, verdict
    with opened() as storage:
        storage.destroy_keys_from(acme.tenant.id, 0, lambda: None)
    assert versions_in(endpoint, f"{name}-keys") == []  # no markers either


def test_what_is_not_there_is_told_from_what_is_refused(
    acme: Cast, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_two_days(acme, monkeypatch)
    with opened() as storage:
        with pytest.raises(NoObjectError, match="404"):
            storage.get(acme.tenant.id, (0, 5), FACTS)
        assert storage.tenants() == [acme.tenant.id]
        assert storage.segments(acme.tenant.id) == [(0, 4), (4, 11)]
    send_events(acme.tenant, make_call())
    with monkeypatch.context() as patch:
        patch.setattr(settings, "ARCHIVE_SECRET_KEY", "not the key")
        with time_goes_on(monkeypatch, timedelta(days=5)):
            archive_all(acme, days=10)
        failing = read_archive(acme)
        assert "403" in failing.failure and failing.next_index == 11
    while run_slice(acme.tenant.id, timezone.now() + timedelta(days=20)):
        pass
    archived = read_archive(acme)
    assert archived.failure == "" and archived.next_index > 11
