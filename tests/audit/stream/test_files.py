"""Files of records in S3-compatible storage."""

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from audit.models import StreamWay
from config.http.bucket import BucketError
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.s3.storage import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    allowed_here,
    open_bucket,
    s3_storage,
)
from tests.support.siem_receivers import HOST
from tests.support.streams import (
    allow,
    keys_of,
    let_time_pass,
    make_stream,
    read_stream,
    send,
    verdict_of,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def storage_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, HOST)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_storage() as running:
        yield running


def make_bucket(endpoint: str, name: str) -> None:
    requests.put(f"{endpoint}/{name}", timeout=10).raise_for_status()


def keys_in(endpoint: str, name: str) -> list[str]:
    listed = requests.get(f"{endpoint}/{name}?list-type=2", timeout=10)
    return re.findall(r"<Key>([^<]*)</Key>", listed.text)


def given(endpoint: str, bucket: str) -> dict[str, Any]:
    return {
        "endpoint": endpoint,
        "bucket": bucket,
        "region": REGION,
        "folder": "tooltrail/acme",
        "access_key": ACCESS_KEY,
        "secret_key": SECRET_KEY,
    }


def test_files_have_each_record_once_and_in_order(acme: Cast, endpoint: str) -> None:
    make_bucket(endpoint, "records")
    send_events(acme.tenant, [event for _ in range(450) for event in make_call()])
    sign(acme.tenant)
    stream = make_stream(acme, StreamWay.S3, **given(endpoint, "records"))
    send(acme)
    stored = read_stream(acme, stream)
    assert not stored.failure and stored.sent_count == 900
    names = keys_in(endpoint, "records")
    assert len(names) == 1
    assert re.fullmatch(
        r"tooltrail/acme/calls/20\d\d/\d\d/\d\d/0{15}-0{12}899-[0-9a-f]{12}\.ndjson\.gz", names[0]
    )
    bucket = open_bucket(endpoint, "records", allowed_here())
    lines = gzip.decompress(bucket.get(names[0])).splitlines()
    bucket.close()
    records = [json.loads(line) for line in lines]
    assert [one["tooltrail"]["index"] for one in records] == list(range(900))
    assert verdict_of(records[77], keys_of(acme)).is_genuine


def test_a_bucket_that_comes_later_gets_everything(acme: Cast, endpoint: str) -> None:
    send_events(acme.tenant, make_call())
    sign(acme.tenant)
    stream = make_stream(acme, StreamWay.S3, **given(endpoint, "later"))
    send(acme)
    assert "404" in read_stream(acme, stream).failure
    make_bucket(endpoint, "later")
    let_time_pass(acme)
    send(acme)
    assert read_stream(acme, stream).sent_count == 2
    assert len(keys_in(endpoint, "later")) == 1


@pytest.mark.parametrize("key", ["a/b.txt", "é/ü x", "a+b=c&d", "~/.-_%"])
def test_objects_come_back_as_they_were_stored(endpoint: str, key: str) -> None:
    make_bucket(endpoint, "objects")
    bucket = open_bucket(endpoint, "objects", allowed_here())
    bucket.put(key, b"\0\xff bytes", "application/octet-stream")
    assert bucket.get(key) == b"\0\xff bytes"
    with pytest.raises(BucketError, match="404"):
        bucket.get(f"{key}.not")
    bucket.close()


def test_storage_that_is_not_allowed_is_not_connected_to(endpoint: str) -> None:
    bucket = open_bucket(endpoint, "objects", ())
    with pytest.raises(BucketError, match="does not allow"):
        bucket.put("a", b"", "text/plain")
    bucket.close()
