"""Addresses of receivers that are refused, with the member that is wrong."""

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from audit.models import StreamWay
from audit.stream.addressing import StreamError, read
from tests.support.siem_receivers import certificate

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


SYSLOG = {"host": "siem.example", "port": 6514}


def encrypted(key: str) -> str:
    private = load_pem_private_key(key.encode(), None)
    return private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass")
    ).decode()


def test_client_certificate_is_shown_and_its_key_is_secret() -> None:
    own = certificate("tooltrail.test")
    given = SYSLOG | {"certificate": own.pem.replace("\n", "\r\n"), "key": own.key}
    address = read(StreamWay.SYSLOG, given, {})
    assert address.settings["certificate"] == own.pem
    assert address.secrets == {"key": own.key}
    kept = read(StreamWay.SYSLOG, given | {"key": ""}, address.secrets)
    assert kept.secrets == address.secrets
    without = read(StreamWay.SYSLOG, SYSLOG, address.secrets)
    assert (without.settings["certificate"], without.secrets) == ("", {})


def test_certificate_that_tls_does_not_take_is_refused() -> None:
    weak = certificate("weak.test", is_weak=True)
    with pytest.raises(StreamError, match="KEY_TOO_SMALL") as refused:
        read(StreamWay.SYSLOG, SYSLOG | {"certificate": weak.pem, "key": weak.key}, {})
    assert refused.value.field == "certificate"


@pytest.mark.parametrize(
    ("changes", "kept", "member", "text"),
    [
        ({"key": ""}, {}, "key", "Enter the private key"),
        ({"key": ""}, {"key": certificate("b").key}, "key", "not the private key"),
        ({"key": certificate("b").key}, {}, "key", "not the private key"),
        ({"key": "no PEM"}, {}, "key", "in PEM"),
        ({"key": "x" * 20_001}, {}, "key", "in PEM"),
        ({"key": encrypted(certificate("a").key)}, {}, "key", "without a passphrase"),
        ({"certificate": "no PEM"}, {}, "certificate", "in PEM"),
        ({"certificate": "x" * 100_001}, {}, "certificate", "in PEM"),
        ({"certificate": ""}, {}, "certificate", "of this key"),
        (
            {"certificate": certificate("a").pem + certificate("a").key},
            {},
            "certificate",
            "its own field",
        ),
    ],
)
def test_wrong_client_certificate_is_named(
    changes: dict[str, str], kept: dict[str, str], member: str, text: str
) -> None:
    own = certificate("a")
    given = SYSLOG | {"certificate": own.pem, "key": own.key} | changes
    with pytest.raises(StreamError, match=text) as refused:
        read(StreamWay.SYSLOG, given, kept)
    assert refused.value.field == member
