"""Killed workers of an archive: the next one ends what they began, and no key is left over."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone

from audit.archive.reading import read_record
from audit.archive.storage import opened
from audit.models import Archive
from config.instance import BASE_DIR
from tenants.scope import tenant_scope
from tests.support.archives import (
    all_bytes,
    begin,
    bundle_of,
    environment,
    make_buckets,
    read_archive,
    segments_of,
    send_two_days,
    sign_all,
    use_buckets,
    verify,
)
from tests.support.factories import Cast
from tests.support.s3.storage import s3_storage

pytestmark = [pytest.mark.slow, pytest.mark.sampled("archive in trouble", 1)]

ENTRIES = 10  # of two days


@pytest.fixture
def endpoint(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_storage() as running:
        make_buckets(running, "records")
        use_buckets(monkeypatch, running, "records")
        yield running


def run_worker(cast: Cast, step: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.killed_archiver", str(cast.tenant.id)]
    return subprocess.run(
        [*command, str(step)],
        cwd=BASE_DIR,
        env=os.environ | environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def let_claim_end(cast: Cast) -> None:
    """The lease of whoever died is over."""
    with tenant_scope(cast.tenant.id):
        Archive.objects.for_tenant(cast.tenant.id).exclude(claim=None).update(
            claimed_until=timezone.now()
        )


def let_begin_again(cast: Cast) -> None:
    """Nothing counts as archived; the objects stay, as they do when a worker dies."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as connection:
        connection.execute("DELETE FROM archive_segment WHERE tenant_id = %s", [cast.tenant.id])
    with tenant_scope(cast.tenant.id):
        Archive.objects.for_tenant(cast.tenant.id).update(next_index=0)


def assert_whole(cast: Cast, endpoint: str, bundle: Path) -> None:
    """Fail unless each entry is archived and proved, with one version of each key."""
    archive, segments = read_archive(cast), segments_of(cast)
    assert (archive.next_index, archive.failure, archive.end_index) == (ENTRIES, "", None)
    assert [(one.first_index, one.end_index) for one in segments] == [(0, 4), (4, ENTRIES)]
    with opened() as storage:
        for one in segments:
            record = read_record(storage, cast.tenant.id, one.place, bytes(one.record_sha256))
            (pack,) = record.segment.packs
            assert storage.has_keys(cast.tenant.id, pack)
    stored = [name.split()[0] for name in all_bytes(endpoint, "records-keys")]
    assert len(stored) == len(set(stored)) == 4  # a secret and the keys of each pack
    verdict = verify(bundle_of(cast.tenant.id, bundle))
    assert verdict["genuine"] and verdict["erased"] == 0, verdict


def test_worker_killed_at_any_step_is_followed_by_one_that_ends_it(
    acme: Cast, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    begin(acme)
    send_two_days(acme, monkeypatch)
    sign_all(acme.tenant)
    lived = run_worker(acme, 0)
    assert lived.returncode == 0, lived.stderr
    steps = int(lived.stdout)
    assert steps > 400
    assert_whole(acme, endpoint, tmp_path / "bundle.zip")
    let_begin_again(acme)
    kills = 0
    while kills < (60 if full else 1):
        done = run_worker(acme, random.randint(1, steps - 1))
        assert done.returncode in (-signal.SIGKILL, 0), done.stderr
        kills += done.returncode != 0
        let_claim_end(acme)
        if read_archive(acme).next_index == ENTRIES:
            assert_whole(acme, endpoint, tmp_path / "bundle.zip")
            let_begin_again(acme)
    ended = run_worker(acme, 0)
    assert ended.returncode == 0, ended.stderr
    assert read_archive(acme).claim is None
    assert_whole(acme, endpoint, tmp_path / "bundle.zip")
