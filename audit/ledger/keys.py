"""The keys this installation signs with: private keys in a file, public keys in the database.

Each machine that signs has the same file.

One Ed25519 key signs for all tenants, each time in the name of the tenant's log: the signed text
names the log, and a key's id depends on that name. During a rotation both keys sign, so that a
reader who knows either key can verify. Then the old private key is deleted.

`signing-keys.json`, mode 0600: [{"private": base64, "created_at": …, "signs_until": … or null}],
newest last. The worker and `manage.py ledger` read it. A key in a PKCS#11 token (`hsm`) has
{"token_id": hex, "public": base64} in place of "private"; an old one stays in the token.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connections, transaction
from tooltrail.ledger import Signer, SigningKey

from audit.ledger import hsm
from audit.ledger.hsm import TokenKey, TokenSigner
from audit.models import LedgerKey
from config import private_files
from config.instance import COMMAND
from config.postgresql.aliases import KEEPER

OVERLAP = timedelta(days=30)
"""How long the old key also signs, by default."""
_NAME = "signing-keys.json"
_LENGTH = 32
# If two machines start with a new database at once, only one of them makes the key.
_FIRST_KEY_LOCK = 0x746F6F6C6B6579


class NoKeyError(Exception):
    """This machine has no key, or an older one, and public keys exist: another may sign."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key, its creation time, and the time until which it signs (None: no end)."""

    secret: bytes | TokenKey = field(repr=False)
    """The private key, or where it is in the token."""
    created_at: datetime
    signs_until: datetime | None = None

    def signer(self, origin: str) -> Signer:
        """What signs in the name of this log."""
        if isinstance(self.secret, TokenKey):
            return TokenSigner(origin, self.secret)
        return SigningKey(origin, self.secret)

    def public(self) -> bytes:
        """Its public key."""
        return self.signer("any").verifier.public


def of_this_machine(now: datetime) -> list[StoredKey]:
    """The keys that sign at `now`, newest first. Makes the first key if there is none.

    Raises NoKeyError if another machine signs, PrivateFileError, TokenError.
    """
    stored = load() or [_make_first(now)]
    return [key for key in reversed(stored) if _signs(key, now)]


def refuse_replaced(signing: Sequence[StoredKey]) -> None:
    """Raise NoKeyError if another machine has replaced the newest of these keys.

    A rotation tells the database when the old key ends, and the file of that machine only.
    """
    newest = signing[0]
    if newest.signs_until is None:
        ends = LedgerKey.objects.using(KEEPER).exclude(signs_until=None)
        if ends.filter(public_key=newest.public()).exists():
            raise NoKeyError(
                f"the newest key in {_path()} was replaced: copy the file of the machine where"
                f" `{COMMAND} ledger rotate-key` ran"
            )


def rotate(now: datetime, overlap: timedelta) -> tuple[StoredKey, list[StoredKey]]:
    """Make a new key. Returns it and the old keys, which sign for `overlap` longer, newest last.

    There are no old keys if the file is lost. Deletes keys that no longer sign. Raises
    PrivateFileError, TokenError.
    """
    with private_files.locked():
        stored = load()
        _save(stored)  # fails here if the file is read-only, before the old keys have an end
        old = [
            replace(key, signs_until=key.signs_until or now + overlap)
            for key in stored
            if _signs(key, now)
        ]
        new = _new(now)
        # Published first, so that every reader of a checkpoint by the new key can find the key.
        with transaction.atomic(using=KEEPER):
            for key in (*old, new):
                publish(key)
        _save([*old, new])
    return new, old


def load() -> list[StoredKey]:
    """The keys in the file, newest last; empty without a file. Raises PrivateFileError."""
    data = private_files.read(_path())
    if data is None:
        return []
    try:
        return [_read(each) for each in json.loads(data)]
    except (ValueError, TypeError, KeyError) as error:
        raise private_files.PrivateFileError(f"{_path()} is not a file of keys") from error


def publish(key: StoredKey) -> None:
    """Put a key's public half into the database. Can be repeated."""
    LedgerKey.objects.using(KEEPER).bulk_create(
        [LedgerKey(key.public(), key.created_at, key.signs_until)],
        update_conflicts=True,
        unique_fields=["public_key"],
        update_fields=["signs_until"],
    )


def _signs(key: StoredKey, now: datetime) -> bool:
    return key.signs_until is None or key.signs_until > now


def _new(now: datetime) -> StoredKey:
    return StoredKey(hsm.generate() if hsm.is_used() else os.urandom(_LENGTH), now)


def _make_first(now: datetime) -> StoredKey:
    with transaction.atomic(using=KEEPER):
        with connections[KEEPER].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_FIRST_KEY_LOCK])
            cursor.execute("SELECT EXISTS (SELECT FROM ledger_key)")
            if cursor.fetchone()[0]:
                raise NoKeyError(
                    f"there is no {_path()}, and there are public keys: another machine signs, or"
                    f" the file is lost ({COMMAND} ledger rotate-key)"
                )
        key = _new(now)
        publish(key)
        _save([key])  # before the commit: a public key without its file would stop everything
    return key


def _path() -> Path:
    path: Path | None = settings.LEDGER_KEYS
    return path or private_files.folder() / _NAME


def _save(keys: list[StoredKey]) -> None:
    document = [
        {
            **_secret_members(key.secret),
            "created_at": key.created_at.isoformat(),
            "signs_until": key.signs_until and key.signs_until.isoformat(),
        }
        for key in keys
    ]
    private_files.write(_path(), json.dumps(document, indent=1).encode())


def _secret_members(secret: bytes | TokenKey) -> dict[str, str]:
    if isinstance(secret, TokenKey):
        return {"token_id": secret.id.hex(), "public": b64encode(secret.public).decode()}
    return {"private": b64encode(secret).decode()}


def _read(document: dict[str, str | None]) -> StoredKey:
    is_in_token = "token_id" in document
    key = b64decode(str(document["public" if is_in_token else "private"]), validate=True)
    if len(key) != _LENGTH:
        raise ValueError("a key has 32 bytes")
    until = document["signs_until"]
    return StoredKey(
        TokenKey(bytes.fromhex(str(document["token_id"])), key) if is_in_token else key,
        datetime.fromisoformat(str(document["created_at"])),
        None if until is None else datetime.fromisoformat(until),
    )
