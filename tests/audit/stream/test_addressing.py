"""Addresses of receivers that are refused, with the member that is wrong."""

import pytest

from audit.models import StreamWay
from audit.stream.addressing import StreamError, read

S3 = {
    "endpoint": "https://s3.example",
    "bucket": "records",
    "folder": "tooltrail/acme",
    "access_key": "key",
    "secret_key": "secret",
}


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("bucket", "a"),
        ("bucket", "a/b"),
        ("folder", "../acme"),
        ("folder", "a//b"),  # signers write its address in two ways
        ("folder", "a b"),
        ("region", "a b"),
        ("secret_key", ""),
        ("endpoint", "http://"),
    ],
)
def test_wrong_member_of_storage_is_named(member: str, value: str) -> None:
    with pytest.raises(StreamError) as refused:
        read(StreamWay.S3, S3 | {member: value}, {})
    assert refused.value.field == member


def test_storage_is_read() -> None:
    address = read(StreamWay.S3, S3 | {"folder": "/a/b/"}, {})
    assert address.settings["folder"] == "a/b"
    assert address.secrets == {"secret_key": "secret"}
