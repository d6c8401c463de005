"""API keys: format, creation, check, rotation and revocation.

A key is `tt_<tenant id>_<key id>_<secret>_<crc>`. It contains the tenant's id, because the
tenant's scope must be open before the key is looked up. Only the SHA-256 of the secret is
stored: the secret has 238 random bits, so a slow hash would add no protection. The CRC detects
truncated and mistyped keys without a database query.

`tenants.api_auth` reads the key from the request. The pages decide who may create a key.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
import string
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from config.postgresql.schema import SCHEMA
from tenants.models import ApiKey, Membership, Scope, Tenant, User
from tenants.scope import tenant_scope

# The last use helps people to clean up keys. One minute is precise enough, and one write per
# minute costs almost nothing.
LAST_USE_EVERY = timedelta(minutes=1)

NETWORKS_MAX = 50
"""Allowed networks of one key."""
IDLE_FOR = timedelta(days=90)
"""A key that nobody used for so long is listed as idle."""

BELIEVED_FOR = timedelta(seconds=5)
"""How long a process accepts events with a key after it looked it up (docs/adr/0006)."""
_VERIFIED_MAX = 10_000
_LOCKS = 64  # so many that a key's look-up seldom waits for another key's

_OWNER_IS_DISABLED = Exists(
    Membership.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        user_id=OuterRef("owner_id"),
        disabled_at__isnull=False,
    )
)
_ALPHABET = string.ascii_letters + string.digits
_KEY_ID_LENGTH = 12
_SECRET_LENGTH = 40
_KEY = re.compile(
    rf"(tt_([0-9a-f]{{32}})_([0-9A-Za-z]{{{_KEY_ID_LENGTH}}})_([0-9A-Za-z]{{{_SECRET_LENGTH}}}))"
    r"_([0-9a-f]{8})"
)


class KeyRefused(Exception):  # noqa: N818  # the term of the response
    """A key was refused; `status` is 401 (not authenticated) or 403 (not permitted)."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class ApiKeyIdentity:
    """The caller of the API: the tenant and its key."""

    tenant_id: UUID
    key_id: str
    api_key_pk: UUID
    sees_payloads: bool = False
    """Whether the key may read payloads and texts that quote them (docs/adr/0011)."""
    allowed: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    """The networks from which it is accepted; none: from everywhere."""

    @property
    def caller(self) -> str:
        """Its name among the callers of `/mcp` (`tenants.identity.resource`)."""
        return self.key_id

    def check_address(self, address: str) -> None:
        """Raise KeyRefused unless the key is accepted from this address.

        A key with allowed networks is refused from an unknown address.
        """
        if not self.allowed:
            return
        try:
            sender = ipaddress.ip_address(address)
        except ValueError:
            sender = None
        mapped = getattr(sender, "ipv4_mapped", None)  # how a socket for both families shows IPv4
        if sender is None or not any((mapped or sender) in each for each in self.allowed):
            raise KeyRefused(
                403, "wrong_address", "This API key is not accepted from this address."
            )


def read_networks(texts: Iterable[str]) -> list[str]:
    """Networks as they are stored, each an address or CIDR. Raises ValueError for another text."""
    networks: dict[str, None] = {}
    for text in texts:
        try:
            networks[str(ipaddress.ip_network(text.strip(), strict=False))] = None
        except ValueError:
            shown = text.strip()[:60]
            raise ValueError(f"{shown!r} is no address or network, such as 10.0.0.0/8") from None
    if len(networks) > NETWORKS_MAX:
        raise ValueError(f"at most {NETWORKS_MAX} networks")
    return list(networks)


def actor_of(identity: ApiKeyIdentity) -> str:
    """The name of a key's program in the audit log. Needs the tenant's scope."""
    return name_of_key(identity.tenant_id, identity.key_id)


def name_of_key(tenant_id: UUID, key_id: str) -> str:
    """The same, by the id of a key."""
    key = ApiKey.objects.filter(tenant_id=tenant_id, key_id=key_id).first()
    return f"API key {key.name} ({key.key_id})" if key else f"API key {key_id}"


class _VerifiedKeys:
    """A cache of recently verified keys, by the SHA-256 of the key, each with its expiry.

    A sender of events uses one key many times a second, and a look-up costs half as much as
    storing a small request.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[float, ApiKeyIdentity]] = {}
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def lock(self, token: str) -> threading.Lock:
        """The lock to hold during a look-up: of many requests with a new key, one looks it up."""
        return self._locks[_sha256(token)[0] % _LOCKS]

    def get(self, token: str) -> ApiKeyIdentity | None:
        until, identity = self._known.get(_sha256(token), (0.0, None))
        return identity if time.monotonic() < until else None

    def add(self, token: str, identity: ApiKeyIdentity, seconds: float) -> None:
        if len(self._known) >= _VERIFIED_MAX:
            self._known.clear()
        self._known[_sha256(token)] = time.monotonic() + seconds, identity

    def clear(self) -> None:
        self._known.clear()


_VERIFIED = _VerifiedKeys()


def new_key_text(tenant_id: UUID) -> str:
    """The text of a new key of a tenant, for `create_key`."""
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(_KEY_ID_LENGTH))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    body = f"tt_{tenant_id.hex}_{key_id}_{secret}"
    return f"{body}_{_crc(body)}"


def key_id_in(text: str, tenant_id: UUID) -> str:
    """The id of a key from its text. Raises ValueError if it is no key of this tenant."""
    try:
        of_tenant, key_id, _ = _read(text)
    except KeyRefused as error:
        raise ValueError(error.message) from None
    if of_tenant != tenant_id:
        raise ValueError("This API key is of another tenant.")
    return key_id


def create_key(
    tenant: Tenant,
    name: str,
    scopes: Collection[Scope],
    *,
    created_by: User | None = None,
    expires_at: datetime | None = None,
    owner: User | None = None,
    purpose: str = "",
    allowed_addresses: Sequence[str] = (),
    text: str = "",
) -> tuple[ApiKey, str]:
    """Store a new key of the tenant and return it with its text, which cannot be shown again.

    With `text`, the key is the one that the text names (`new_key_text`). Raises ValueError without
    a scope, for an expiry in the past, or for a text that is no key of this tenant.
    """
    if not scopes:
        raise ValueError("a key needs at least one scope")
    if expires_at is not None and expires_at <= timezone.now():
        raise ValueError("the expiry is in the past")
    text = text or new_key_text(tenant.id)
    key_id = key_id_in(text, tenant.id)
    _, _, secret = _read(text)
    with tenant_scope(tenant.id):
        key = ApiKey.objects.create(
            tenant=tenant,
            key_id=key_id,
            name=name,
            secret_sha256=_sha256(secret),
            scopes=[scope.value for scope in Scope if scope in scopes],
            created_by=created_by,
            expires_at=expires_at,
            owner=owner or created_by,
            purpose=purpose,
            allowed_addresses=read_networks(allowed_addresses),
        )
    return key, text


def authenticate(token: str, scope: Scope, address: str = "") -> ApiKeyIdentity:
    """The identity of a key that has `scope`. Opens its own tenant scope; one query.

    `address` is the sender's; '' if it is unknown. Raises KeyRefused: 401 for a key that is
    malformed, mistyped, unknown, revoked or expired; 403 for a valid key without this scope, from
    an address that it does not allow, of a disabled service account, or of a suspended tenant. The
    secret is checked first: without it, a revoked or expired key is "unknown". Raises SchemaError
    if the key is unknown and this process may not use the database.

    With the scope `ingest` a verified key is cached for `BELIEVED_FOR`. So a process looks up each
    key, and may update its last use, only a few times a minute, however many events arrive.
    """
    if scope is not Scope.INGEST:
        return _load_key(token, scope, address)
    if (identity := _VERIFIED.get(token)) is None:
        with _VERIFIED.lock(token):
            identity = _VERIFIED.get(token) or _load_key(token, scope, address)
    identity.check_address(address)
    return identity


def _load_key(token: str, scope: Scope, address: str) -> ApiKeyIdentity:
    tenant_id, key_id, secret = _read(token)
    now = timezone.now()
    with tenant_scope(tenant_id):
        keys = ApiKey.objects.filter(tenant_id=tenant_id, key_id=key_id)
        key = keys.select_related("tenant").annotate(is_disabled=_OWNER_IS_DISABLED).first()
        if key is None:
            # While a database is being distributed, an older connection sees no rows. Senders
            # repeat after 503, and may give up after 401.
            SCHEMA.check()
        if key is None or not hmac.compare_digest(bytes(key.secret_sha256), _sha256(secret)):
            raise KeyRefused(401, "unknown_key", "Unknown API key.")
        if key.revoked_at is not None:
            raise KeyRefused(401, "revoked_key", "This API key was revoked.")
        if key.expires_at is not None and key.expires_at <= now:
            raise KeyRefused(401, "expired_key", "This API key has expired.")
        if scope.value not in key.scopes:
            raise KeyRefused(403, "missing_scope", f"This API key lacks the scope {scope.value}.")
        if key.is_disabled:
            raise KeyRefused(403, "disabled_owner", "This key's service account is disabled.")
        if key.tenant.suspended_at is not None:
            raise KeyRefused(403, "tenant_suspended", "This key's tenant is suspended.")
        identity = ApiKeyIdentity(
            tenant_id=tenant_id,
            key_id=key_id,
            api_key_pk=key.pk,
            sees_payloads=Scope.PAYLOADS in key.scopes,
            allowed=tuple(map(ipaddress.ip_network, key.allowed_addresses)),
        )
        identity.check_address(address)
        _record_use(key, now)
    if scope is Scope.INGEST:
        left = BELIEVED_FOR if key.expires_at is None else min(BELIEVED_FOR, key.expires_at - now)
        _VERIFIED.add(token, identity, left.total_seconds())
    return identity


def forget_verified() -> None:
    """Look up every key again. Other processes may accept events for up to `BELIEVED_FOR`."""
    _VERIFIED.clear()


def revoke_key(key: ApiKey) -> None:
    """Revoke a key permanently. Needs its tenant's scope; a key revoked before keeps that time.

    Other processes may accept events with it for up to `BELIEVED_FOR`.
    """
    now = timezone.now()
    ApiKey.objects.filter(tenant_id=key.tenant_id, pk=key.pk, revoked_at=None).update(
        revoked_at=now
    )
    _VERIFIED.clear()


def rotate_key(
    key: ApiKey, *, overlap: timedelta, created_by: User | None, expires_at: datetime | None
) -> tuple[ApiKey, str]:
    """Create a key that replaces this one and is like it; returns as `create_key`.

    The old key works for `overlap` more, or until it expires, whichever is sooner. Raises
    ValueError for a key that is revoked, expired or already replaced. Needs the tenant's scope.
    """
    now = timezone.now()
    # Locked: if two requests rotate a key at the same time, only one creates a new key.
    old = ApiKey.objects.select_for_update().get(tenant_id=key.tenant_id, pk=key.pk)
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
        raise ValueError("the key is revoked or has expired")
    if old.replaced_by_id is not None:
        raise ValueError("the key was already replaced")
    new, text = create_key(
        key.tenant,
        old.name,
        [Scope(scope) for scope in old.scopes],
        created_by=created_by,
        expires_at=expires_at,
        owner=old.owner,
        purpose=old.purpose,
        allowed_addresses=old.allowed_addresses,
    )
    ends_at = now + overlap if old.expires_at is None else min(now + overlap, old.expires_at)
    ApiKey.objects.filter(tenant_id=key.tenant_id, pk=key.pk).update(
        expires_at=ends_at, replaced_by_id=new.pk
    )
    _VERIFIED.clear()
    return new, text


def working_keys(tenant: Tenant, now: datetime) -> list[ApiKey]:
    """Keys that work and that no other key replaces, the oldest first. Needs the scope."""
    keys = ApiKey.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=now),
        tenant=tenant,
        revoked_at=None,
        replaced_by_id=None,
    )
    return list(keys.select_related("owner").order_by("created_at", "pk"))


def idle_keys(tenant: Tenant, now: datetime) -> list[ApiKey]:
    """Keys that work and that nobody has used for `IDLE_FOR`, the longest idle first.

    Needs the tenant's scope. A key counts as used when it was created.
    """
    since = now - IDLE_FOR
    keys = ApiKey.objects.filter(
        Q(last_used_at=None) | Q(last_used_at__lt=since),
        Q(expires_at=None) | Q(expires_at__gt=now),
        tenant=tenant,
        revoked_at=None,
        created_at__lt=since,
    )
    return list(keys.select_related("owner").order_by(Coalesce("last_used_at", "created_at"), "pk"))


def _record_use(key: ApiKey, now: datetime) -> None:
    due = now - LAST_USE_EVERY
    if key.last_used_at is not None and key.last_used_at > due:
        return
    # The same condition in the database: of many simultaneous requests only one writes.
    ApiKey.objects.filter(
        Q(last_used_at=None) | Q(last_used_at__lte=due), tenant_id=key.tenant_id, pk=key.pk
    ).update(last_used_at=now)


def _read(token: str) -> tuple[UUID, str, str]:
    match = _KEY.fullmatch(token)
    if match is None:
        raise KeyRefused(401, "malformed_key", "This is not a Tooltrail API key (tt_…).")
    body, tenant_hex, key_id, secret, crc = match.groups()
    if crc != _crc(body):
        raise KeyRefused(401, "mistyped_key", "This API key is mistyped: its checksum is wrong.")
    return UUID(tenant_hex), key_id, secret


def _crc(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
