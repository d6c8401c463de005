"""Files of records in Ceph's S3, which checks each signature."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from requests_aws4auth import AWS4Auth

from audit.models import StreamWay
from config.http.bucket import BucketError
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.s3.radosgw import ceph_gateway
from tests.support.s3.storage import ACCESS_KEY, REGION, SECRET_KEY, allowed_here, open_bucket
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

pytestmark = [pytest.mark.slow, pytest.mark.sampled("Ceph", 0)]  # 300 MB of packages

KEYS = ["a/b.txt", "é/ü x", "a+b=c&d", "~/.-_%", "日本/語"]


@pytest.fixture(autouse=True)
def storage_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, HOST)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway, with a bucket `records`."""
    with ceph_gateway(tmp_path_factory.mktemp("ceph")) as running:
        signer = AWS4Auth(ACCESS_KEY, SECRET_KEY, REGION, "s3")
        requests.put(f"{running}/records", auth=signer, timeout=60).raise_for_status()
        yield running


def given(endpoint: str, secret_key: str) -> dict[str, Any]:
    return {
        "endpoint": endpoint,
        "bucket": "records",
        "region": REGION,
        "folder": "tooltrail/acme",
        "access_key": ACCESS_KEY,
        "secret_key": secret_key,
    }


def test_each_record_arrives_once_and_in_order(acme: Cast, endpoint: str) -> None:
    send_events(acme.tenant, [event for _ in range(50) for event in make_call()])
    sign(acme.tenant)
    alone = given(endpoint, SECRET_KEY) | {"folder": "tooltrail/alone"}
    stream = make_stream(acme, StreamWay.S3, **alone)
    send(acme)
    assert not read_stream(acme, stream).failure
    signer = AWS4Auth(ACCESS_KEY, SECRET_KEY, REGION, "s3")
    address = f"{endpoint}/records?list-type=2&prefix=tooltrail/alone/"
    listed = requests.get(address, auth=signer, timeout=60).text
    key = listed.partition("<Key>")[2].partition("</Key>")[0]
    assert listed.count("<Key>") == 1
    bucket = open_bucket(endpoint, "records", allowed_here())
    records = [json.loads(line) for line in gzip.decompress(bucket.get(key)).splitlines()]
    bucket.close()
    assert [one["tooltrail"]["index"] for one in records] == list(range(100))
    assert verdict_of(records[7], keys_of(acme)).is_genuine


def test_wrong_secret_key_is_refused_and_nothing_is_skipped(acme: Cast, endpoint: str) -> None:
    send_events(acme.tenant, make_call())
    sign(acme.tenant)
    stream = make_stream(acme, StreamWay.S3, **given(endpoint, "not the key"))
    send(acme)
    stored = read_stream(acme, stream)
    assert "403" in stored.failure and stored.sent_count == 0
    let_time_pass(acme)
    send(acme)
    assert "403" in read_stream(acme, stream).failure


@pytest.mark.parametrize("key", KEYS)
def test_objects_come_back_as_they_were_stored(endpoint: str, key: str) -> None:
    bucket = open_bucket(endpoint, "records", allowed_here())
    bucket.put(key, b"\0\xff bytes", "application/octet-stream")
    assert bucket.get(key) == b"\0\xff bytes"
    with pytest.raises(BucketError, match="404"):
        bucket.get(f"{key}.not")
    bucket.close()
