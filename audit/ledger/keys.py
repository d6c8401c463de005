"""The keys this installation signs with: private keys in a file, public keys in the database.

One Ed25519 key signs for all tenants, each time in the name of the tenant's log: the signed text
names the log, and a key's id depends on that name. During a rotation both keys sign, so that a
reader who knows either key can verify. Then the old private key is deleted.

`signing-keys.json`, mode 0600: [{"private": base64, "created_at": …, "signs_until": … or null}],
newest last. The worker and `manage.py ledger` read it.
"""

import json
import os
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from django.db import connections, transaction
from tooltrail.ledger import SigningKey

from audit.ledger import private_files
from audit.models import LedgerKey
from config.instance import COMMAND
from config.postgresql.aliases import KEEPER

OVERLAP = timedelta(days=30)
"""How long the old key also signs, by default."""
_NAME = "signing-keys.json"
_LENGTH = 32
# If two machines start with a new database at once, only one of them makes the key.
_FIRST_KEY_LOCK = 0x746F6F6C6B6579


class NoKeyError(Exception):
    """This machine has no key although public keys exist: another machine may sign."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A private key, its creation time, and the time until which it signs (None: no end)."""

    private: bytes
    created_at: datetime
    signs_until: datetime | None = None

    def public(self) -> bytes:
        """Its public key."""
        return SigningKey("any", self.private).verifier.public


def of_this_machine(now: datetime) -> list[StoredKey]:
    """The keys that sign at `now`, newest first. Makes the first key if there is none.

    Raises NoKeyError if another machine signs, PrivateFileError.
    """
    stored = load() or [_make_first(now)]
    return [key for key in reversed(stored) if _signs(key, now)]


def rotate(now: datetime, overlap: timedelta) -> tuple[StoredKey, list[StoredKey]]:
    """Make a new key. Returns it and the old keys, which sign for `overlap` longer, newest last.

    There are no old keys if the file is lost. Deletes keys that no longer sign. Raises
    PrivateFileError.
    """
    with private_files.locked():
        old = [
            replace(key, signs_until=key.signs_until or now + overlap)
            for key in load()
            if _signs(key, now)
        ]
        new = StoredKey(os.urandom(_LENGTH), now)
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


def _make_first(now: datetime) -> StoredKey:
    key = StoredKey(os.urandom(_LENGTH), now)
    with transaction.atomic(using=KEEPER):
        with connections[KEEPER].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_FIRST_KEY_LOCK])
            cursor.execute("SELECT EXISTS (SELECT FROM ledger_key)")
            if cursor.fetchone()[0]:
                raise NoKeyError(
                    f"there is no {_path()}, and there are public keys: another machine signs, or"
                    f" the file is lost ({COMMAND} ledger rotate-key)"
                )
        publish(key)
        _save([key])  # before the commit: a public key without its file would stop everything
    return key


def _path() -> Path:
    return private_files.folder() / _NAME


def _save(keys: list[StoredKey]) -> None:
    document = [
        {
            "private": b64encode(key.private).decode(),
            "created_at": key.created_at.isoformat(),
            "signs_until": key.signs_until and key.signs_until.isoformat(),
        }
        for key in keys
    ]
    private_files.write(_path(), json.dumps(document, indent=1).encode())


def _read(document: dict[str, str | None]) -> StoredKey:
    private = b64decode(str(document["private"]), validate=True)
    if len(private) != _LENGTH:
        raise ValueError("a private key has 32 bytes")
    until = document["signs_until"]
    return StoredKey(
        private,
        datetime.fromisoformat(str(document["created_at"])),
        None if until is None else datetime.fromisoformat(until),
    )
