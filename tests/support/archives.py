"""The archive of a tenant in tests: real storage with object lock and versions."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest
import requests
from django.conf import settings
from django.utils import timezone
from requests_aws4auth import AWS4Auth

from audit.archive.archives import begin_archive
from audit.archive.archiving import run_slice
from audit.archive.exporting import export
from audit.archive.layout import ArchiveError, Pack
from audit.archive.packs import unseal, unwrap
from audit.archive.reading import read_record
from audit.archive.storage import box_place, opened
from audit.ledger.actions import enter_all_actions
from audit.models import Archive, ArchiveSegment
from config.boxes import BoxError, open_box
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import keep, sign
from tests.support.s3.storage import ACCESS_KEY, REGION, SECRET_KEY, allowed_here
from tests.support.siem_receivers import HOST

LATER = timedelta(hours=30)
"""Always on another UTC day than now, and partitions are there."""
_NAMES = (
    *("TOOLTRAIL_ARCHIVE_URL", "TOOLTRAIL_ARCHIVE_KEYS_URL", "TOOLTRAIL_ARCHIVE_REGION"),
    *("TOOLTRAIL_ARCHIVE_ACCESS_KEY", "TOOLTRAIL_ARCHIVE_SECRET_KEY", "TOOLTRAIL_ENCRYPTION_KEYS"),
)
_VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
_minutes = count(1)


def sign_all(tenant: Tenant) -> None:
    """Sign everything, although the last checkpoint is not a minute old."""
    sign(tenant)
    keep(tenant, timezone.now() + timedelta(minutes=next(_minutes)))


@contextmanager
def time_goes_on(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> Iterator[None]:
    """Django's clock is ahead until the block ends."""
    real = timezone.now
    with monkeypatch.context() as patch:
        patch.setattr("django.utils.timezone.now", lambda: real() + by)
        yield


def make_buckets(endpoint: str, name: str) -> None:
    """A bucket with object lock, and one with versions and without locks."""
    records, headers = f"{endpoint}/{name}", {"x-amz-bucket-object-lock-enabled": "true"}
    with requests.Session() as session:
        session.auth = AWS4Auth(ACCESS_KEY, SECRET_KEY, "us-east-1", "s3")  # no place to be named
        for answer in (
            session.put(records, headers=headers, timeout=60),
            session.put(f"{records}-keys", timeout=60),
            session.put(f"{records}-keys?versioning", data=_VERSIONED, timeout=60),
        ):
            answer.raise_for_status()


def use_buckets(monkeypatch: pytest.MonkeyPatch, endpoint: str, name: str) -> None:
    """Settings of an operator."""
    monkeypatch.setattr(settings, "ARCHIVE_URL", f"{endpoint}/{name}/tooltrail")
    monkeypatch.setattr(settings, "ARCHIVE_KEYS_URL", f"{endpoint}/{name}-keys")
    monkeypatch.setattr(settings, "ARCHIVE_REGION", REGION)
    monkeypatch.setattr(settings, "ARCHIVE_ACCESS_KEY", ACCESS_KEY)
    monkeypatch.setattr(settings, "ARCHIVE_SECRET_KEY", SECRET_KEY)
    monkeypatch.setattr(settings, "ARCHIVE_ALLOW", allowed_here())


def environment() -> dict[str, str]:
    """The same settings as variables, for another process."""
    named = {name: str(getattr(settings, name.removeprefix("TOOLTRAIL_"))) for name in _NAMES}
    return {**named, "TOOLTRAIL_ARCHIVE_ALLOW": HOST}


def begin(cast: Cast, payload_days: int | None = None) -> None:
    """Archive the tenant from now on."""
    with tenant_scope(cast.tenant.id):
        begin_archive(cast.tenant, "operator", payload_days)


def send_two_days(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of today, of case `mine` one of them, and of another day."""
    send_events(
        cast.tenant, [*make_call(case_id="mine", args={"secret": "swordfish"}), *make_call()]
    )
    with time_goes_on(monkeypatch, LATER):
        send_events(cast.tenant, [event for _ in range(3) for event in make_call()])


def archive_all(cast: Cast, *, days: int = 4) -> Archive:
    """Sign, and archive what is sealed some days later."""
    enter_all_actions(cast.tenant.id)
    sign_all(cast.tenant)
    while run_slice(cast.tenant.id, timezone.now() + timedelta(days=days)):
        pass
    return read_archive(cast)


def read_archive(cast: Cast) -> Archive:
    """The row of the archive."""
    with tenant_scope(cast.tenant.id):
        return Archive.objects.for_tenant(cast.tenant.id).get()


def segments_of(cast: Cast) -> list[ArchiveSegment]:
    """The rows of the segments, in order."""
    with tenant_scope(cast.tenant.id):
        return list(ArchiveSegment.objects.for_tenant(cast.tenant.id).order_by("first_index"))


def bundle_of(tenant_id: UUID, path: Path) -> Path:
    """A bundle of everything that is archived, made of the storage alone."""
    with opened() as storage:
        path.write_bytes(b"".join(export(storage, tenant_id, "an auditor", None, None)))
    return path


def export_without_database(tenant: str, path: Path) -> Path:
    """The same by the command, in a process whose database does not exist."""
    subprocess.run(
        [sys.executable, "manage.py", "archive", "export", tenant, "--to", str(path)],
        env={
            "PATH": os.environ["PATH"],
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/gone",
            **environment(),
        },
        check=True,
        cwd=settings.BASE_DIR,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    return path


def verify(bundle: Path, *arguments: str) -> dict[str, Any]:
    """What `tooltrail verify` says, in a process of its own."""
    command = [sys.executable, "-m", "tooltrail", "verify", "--json", str(bundle), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    verdict: dict[str, Any] = json.loads(answer.stdout)
    return verdict


def packs_of(cast: Cast, position: int = 0) -> list[Pack]:
    """The packs of a segment, from its record."""
    segment = segments_of(cast)[position]
    with opened() as storage:
        record = read_record(storage, cast.tenant.id, segment.place, bytes(segment.record_sha256))
    return record.segment.packs


def recoverable(endpoint: str, name: str, tenant_id: UUID) -> list[bytes]:
    """Whatever can be decrypted with anything in both buckets and the file of encryption keys.

    Each key in any version is tried at each ciphertext in any version; records are not asked.
    """
    packs = [
        (Pack(int(place.split()[0].split("-")[-2]), 0, sha256(data).digest()), data)
        for place, data in all_bytes(endpoint, name).items()
        if str(tenant_id) in place and "/pack-" in place
    ]
    keys_here = all_bytes(endpoint, f"{name}-keys").items()
    stored = [data for place, data in keys_here if str(tenant_id) in place]
    found = set()
    for pack, data in packs:
        place = box_place(tenant_id, pack)
        for secret in (text for each in stored if (text := _tried(open_box, place, each))):
            for keys in (text for each in stored if (text := _tried(unwrap, secret, each, place))):
                payloads = unseal(tenant_id, pack.first_index, data, keys)
                found |= {one.raw for one in payloads if one is not None}
    return sorted(found)


def _tried(read: Callable[..., bytes], *arguments: bytes) -> bytes | None:
    try:
        return read(*arguments)
    except (ArchiveError, BoxError, ValueError):  # another's
        return None


def all_bytes(endpoint: str, name: str) -> dict[str, bytes]:
    """Each version of each object of a bucket, by key and version."""
    stored, signs = {}, AWS4Auth(ACCESS_KEY, SECRET_KEY, REGION, "s3")
    listed = requests.get(f"{endpoint}/{name}?versions", auth=signs, timeout=10).text
    for each in ElementTree.fromstring(listed).iterfind("{*}Version"):
        key, version = each.findtext("{*}Key"), each.findtext("{*}VersionId")
        address = f"{endpoint}/{name}/{key}?versionId={version}"
        answer = requests.get(address, auth=signs, timeout=10)
        answer.raise_for_status()
        stored[f"{key} {version}"] = answer.content
    return stored
