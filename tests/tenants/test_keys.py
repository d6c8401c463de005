"""API keys: what they permit, and the reason of each rejection."""

import datetime
import threading
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tenants import keys
from tenants.keys import (
    BELIEVED_FOR,
    ApiKeyIdentity,
    KeyRefused,
    authenticate,
    create_key,
    revoke_key,
    rotate_key,
)
from tenants.models import ApiKey, Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast


def _refusal(token: str, scope: Scope = Scope.READ) -> tuple[int, str]:
    with pytest.raises(KeyRefused) as refused:
        authenticate(token, scope)
    return refused.value.status, refused.value.code


def _with_crc(body: str) -> str:
    return f"{body}_{zlib.crc32(body.encode()):08x}"


def test_key_authenticates_its_own_tenant_and_scope(acme: Cast) -> None:
    key, text = create_key(acme.tenant, "ci", [Scope.READ])
    identity = authenticate(text, Scope.READ)
    assert (identity.tenant_id, identity.key_id, identity.api_key_pk) == (
        acme.tenant.id,
        key.key_id,
        key.pk,
    )
    assert text.startswith(f"tt_{acme.tenant.id.hex}_{key.key_id}_")


def test_secret_is_not_stored(acme: Cast) -> None:
    key, text = create_key(acme.tenant, "ci", [Scope.READ])
    secret = text.split("_")[3]
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT k::text FROM api_key k WHERE id = %s", [key.pk])
        (row,) = cursor.fetchone()
    assert secret not in row
    assert secret.encode().hex() not in row


@pytest.mark.parametrize("text", ["", "tt_", "Bearer x", "tt_1_2_3_4", "\x00", "tt_" + "é" * 99])
def test_malformed_key_is_rejected(text: str) -> None:
    assert _refusal(text) == (401, "malformed_key")


def test_mistyped_key_is_rejected_without_a_query(acme: Cast) -> None:
    _, text = create_key(acme.tenant, "ci", [Scope.READ])
    at = len(text) - 20
    mistyped = text[:at] + ("a" if text[at] != "a" else "b") + text[at + 1 :]
    with CaptureQueriesContext(connection) as queries:
        assert _refusal(mistyped) == (401, "mistyped_key")
    assert not queries.captured_queries


def test_wrong_secret_unknown_key_and_unknown_tenant_get_the_same_error(
    acme: Cast, globex: Cast
) -> None:
    _, text = create_key(acme.tenant, "ci", [Scope.READ])
    tenant_id, key_id, secret = text.split("_")[1:4]
    for parts in (
        (tenant_id, key_id, secret[::-1]),
        (tenant_id, key_id[::-1], secret),
        (globex.tenant.id.hex, key_id, secret),
        ("0" * 32, key_id, secret),
    ):
        assert _refusal(_with_crc("_".join(("tt", *parts)))) == (401, "unknown_key")


def test_revoked_key_is_rejected_and_keeps_its_revocation_time(acme: Cast) -> None:
    key, text = create_key(acme.tenant, "ci", [Scope.READ])
    with tenant_scope(acme.tenant.id):
        revoke_key(key)
        first = ApiKey.objects.get(pk=key.pk).revoked_at
        revoke_key(key)
        assert ApiKey.objects.get(pk=key.pk).revoked_at == first is not None
    assert _refusal(text) == (401, "revoked_key")


def test_expired_key_is_rejected(acme: Cast) -> None:
    soon = timezone.now() + datetime.timedelta(hours=1)
    key, text = create_key(acme.tenant, "ci", [Scope.READ], expires_at=soon)
    authenticate(text, Scope.READ)
    with tenant_scope(acme.tenant.id):
        ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())
    assert _refusal(text) == (401, "expired_key")


def test_key_without_the_scope_is_rejected(acme: Cast) -> None:
    _, text = create_key(acme.tenant, "ci", [Scope.INGEST])
    assert _refusal(text, Scope.REGISTRY) == (403, "missing_scope")


def test_key_needs_a_scope_and_a_future_expiry(acme: Cast) -> None:
    with pytest.raises(ValueError, match="scope"):
        create_key(acme.tenant, "ci", [])
    with pytest.raises(ValueError, match="in the past"):
        create_key(acme.tenant, "ci", [Scope.READ], expires_at=timezone.now())


def test_last_use_is_written_at_most_once_a_minute(acme: Cast) -> None:
    key, text = create_key(acme.tenant, "ci", [Scope.READ])

    def last_use() -> datetime.datetime | None:
        with tenant_scope(acme.tenant.id):
            return ApiKey.objects.get(pk=key.pk).last_used_at

    assert last_use() is None
    authenticate(text, Scope.READ)
    first = last_use()
    authenticate(text, Scope.READ)
    assert last_use() == first is not None
    earlier = first - datetime.timedelta(minutes=2)
    with tenant_scope(acme.tenant.id):
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=earlier)
    authenticate(text, Scope.READ)
    assert last_use() > earlier  # type: ignore[operator]  # it was used, so not None


def test_ingest_writes_last_use_only_on_a_cache_miss(acme: Cast) -> None:
    key, text = create_key(acme.tenant, "ci", [Scope.INGEST])
    authenticate(text, Scope.INGEST)
    with tenant_scope(acme.tenant.id):
        assert ApiKey.objects.get(pk=key.pk).last_used_at is not None
    with CaptureQueriesContext(connection) as queries:
        authenticate(text, Scope.INGEST)
    assert not queries.captured_queries


def test_rotated_key_works_beside_its_successor_until_the_overlap_ends(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, text = create_key(acme.tenant, "ci", [Scope.INGEST, Scope.READ])
    with tenant_scope(acme.tenant.id):
        new, new_text = rotate_key(
            old, overlap=datetime.timedelta(hours=1), created_by=acme.admin, expires_at=None
        )
        with pytest.raises(ValueError, match="already replaced"):
            rotate_key(old, overlap=datetime.timedelta(0), created_by=acme.admin, expires_at=None)
    assert (new.name, new.scopes) == (old.name, old.scopes)
    for scope in (Scope.INGEST, Scope.READ):
        assert authenticate(text, scope).api_key_pk == old.pk
        assert authenticate(new_text, scope).api_key_pk == new.pk
    later = timezone.now() + datetime.timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    keys._VERIFIED.clear()
    for scope in (Scope.INGEST, Scope.READ):
        assert _refusal(text, scope) == (401, "expired_key")
    assert authenticate(new_text, Scope.READ).api_key_pk == new.pk


def test_rotation_never_extends_or_revives_a_key(acme: Cast) -> None:
    soon = timezone.now() + datetime.timedelta(minutes=1)
    old, _ = create_key(acme.tenant, "ci", [Scope.READ], expires_at=soon)
    a_day = datetime.timedelta(days=1)
    with tenant_scope(acme.tenant.id):
        rotate_key(old, overlap=a_day, created_by=acme.admin, expires_at=None)
        assert ApiKey.objects.get(pk=old.pk).expires_at == soon
    gone, _ = create_key(acme.tenant, "gone", [Scope.READ])
    with tenant_scope(acme.tenant.id):
        revoke_key(gone)
        with pytest.raises(ValueError, match="revoked or has expired"):
            rotate_key(gone, overlap=a_day, created_by=acme.admin, expires_at=None)


@pytest.mark.parametrize("scope", Scope)
def test_key_of_a_suspended_tenant_is_rejected_with_the_reason(acme: Cast, scope: Scope) -> None:
    _, text = create_key(acme.tenant, "ci", list(Scope))
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at=timezone.now())
    assert _refusal(text, scope) == (403, "tenant_suspended")
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at=None)
    assert authenticate(text, scope).tenant_id == acme.tenant.id


def _revoked_by_another_process(key: ApiKey) -> None:
    with tenant_scope(key.tenant_id):
        ApiKey.objects.filter(tenant_id=key.tenant_id, pk=key.pk).update(revoked_at=timezone.now())


def test_cached_ingest_key_is_checked_again_after_seconds(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Mock(monotonic=lambda: 1000.0)
    monkeypatch.setattr(keys, "time", clock)
    key, text = create_key(acme.tenant, "ci", [Scope.INGEST, Scope.READ])
    identity = authenticate(text, Scope.INGEST)
    _revoked_by_another_process(key)
    with CaptureQueriesContext(connection) as queries:
        assert authenticate(text, Scope.INGEST) == identity
    assert not queries.captured_queries
    assert _refusal(text, Scope.READ) == (401, "revoked_key")
    clock.monotonic = lambda: 1000.0 + BELIEVED_FOR.total_seconds()
    assert _refusal(text, Scope.INGEST) == (401, "revoked_key")


def test_revocation_takes_effect_immediately_in_the_same_process(acme: Cast) -> None:
    key, text = create_key(acme.tenant, "ci", [Scope.INGEST])
    authenticate(text, Scope.INGEST)
    with tenant_scope(acme.tenant.id):
        revoke_key(key)
    assert _refusal(text, Scope.INGEST) == (401, "revoked_key")


def test_key_is_not_cached_beyond_its_expiry(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Mock(monotonic=lambda: 1000.0)
    monkeypatch.setattr(keys, "time", clock)
    expires_at = timezone.now() + BELIEVED_FOR / 2
    key, text = create_key(acme.tenant, "ci", [Scope.INGEST], expires_at=expires_at)
    authenticate(text, Scope.INGEST)
    _revoked_by_another_process(key)
    clock.monotonic = lambda: 1000.0 + BELIEVED_FOR.total_seconds() / 2
    assert _refusal(text, Scope.INGEST) == (401, "revoked_key")


def test_concurrent_requests_with_a_new_key_query_once(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = ApiKeyIdentity(uuid.uuid4(), "key", uuid.uuid4())
    together = threading.Barrier(8)
    loaded = []

    def load_key(token: str, scope: Scope, address: str) -> ApiKeyIdentity:
        loaded.append(token)
        threading.Event().wait(0.1)  # long enough for the others to want it, too
        keys._VERIFIED.add(token, identity, 60)
        return identity

    def send() -> ApiKeyIdentity:
        together.wait()
        return authenticate("new", Scope.INGEST)

    monkeypatch.setattr(keys, "_load_key", load_key)
    with ThreadPoolExecutor(8) as many:
        assert {each.result() for each in [many.submit(send) for _ in range(8)]} == {identity}
    assert loaded == ["new"]
    keys._VERIFIED.clear()


NETWORKS = ["10.0.0.0/8", "2001:db8::/32"]


@pytest.mark.parametrize("scope", [Scope.READ, Scope.INGEST])
@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"])
def test_key_is_accepted_from_its_networks(acme: Cast, scope: Scope, address: str) -> None:
    _, text = create_key(acme.tenant, "ci", [scope], allowed_addresses=NETWORKS)
    assert authenticate(text, scope, address).tenant_id == acme.tenant.id
    assert authenticate(text, scope, address).tenant_id == acme.tenant.id


@pytest.mark.parametrize("scope", [Scope.READ, Scope.INGEST])
@pytest.mark.parametrize("address", ["11.1.2.3", "2001:db9::7", "", "unix:", "10.1.2.3.4"])
def test_key_is_refused_from_elsewhere_even_if_it_was_just_accepted(
    acme: Cast, scope: Scope, address: str
) -> None:
    key, text = create_key(acme.tenant, "ci", [scope], allowed_addresses=NETWORKS)
    with pytest.raises(KeyRefused) as first:
        authenticate(text, scope, address)
    with tenant_scope(acme.tenant.id):
        assert ApiKey.objects.get(tenant=acme.tenant, pk=key.pk).last_used_at is None
    authenticate(text, scope, "10.0.0.1")
    with pytest.raises(KeyRefused) as refused:
        authenticate(text, scope, address)
    assert (first.value.code, refused.value.status) == ("wrong_address", 403)


@pytest.mark.parametrize("wrong", ["10.0.0.0/33", "example.org", "", "10.0.0"])
def test_invalid_network_creates_no_key(acme: Cast, wrong: str) -> None:
    with pytest.raises(ValueError, match="no address or network"):
        create_key(acme.tenant, "ci", [Scope.READ], allowed_addresses=[wrong])
    with tenant_scope(acme.tenant.id):
        assert not ApiKey.objects.exists()


def test_key_of_a_request_is_checked_against_the_address_of_its_client(acme: Cast) -> None:
    _, text = create_key(
        acme.tenant, "ci", [Scope.READ, Scope.INGEST], allowed_addresses=["10.0.0.0/8"]
    )
    headers = {"x-api-key": text}
    for sender, status in (("10.0.0.7", 200), ("192.0.2.7", 403)):
        client = Client(headers=headers)
        client.defaults["REMOTE_ADDR"] = sender
        assert client.get("/api/v1/summary").status_code == status
        spans = client.post("/v1/traces", b"{}", content_type="application/json")
        assert spans.status_code == status


def test_rotated_key_is_like_the_old_one(acme: Cast) -> None:
    old, _ = create_key(
        acme.tenant,
        "ci",
        [Scope.READ],
        owner=acme.editor,
        purpose="nightly",
        allowed_addresses=["10.0.0.0/8"],
    )
    with tenant_scope(acme.tenant.id):
        new, _ = rotate_key(
            old, overlap=datetime.timedelta(), created_by=acme.admin, expires_at=None
        )
    assert (new.owner, new.purpose, new.allowed_addresses) == (
        acme.editor,
        "nightly",
        ["10.0.0.0/8"],
    )
