"""The keys of pseudonyms: apart from the database, and the same on each host that takes events.

At first there is one, derived from the server's secret key. A rotation writes it and a new one to
`principal-keys.json`, mode 0600: [{"secret": base64, "created_at": …}], newest last. The newest key
makes pseudonyms. A pseudonym names its key by an id made of the secret, so that after a rotation a
person's older pseudonyms are still found. If file and secret key are lost, pseudonyms stay as they
are, and nobody can be looked up under the lost keys.
"""

import fcntl
import hashlib
import hmac
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from config import private_files
from config.instants import iso
from config.private_files import PrivateFileError

_LENGTH = 32


@dataclass(frozen=True, slots=True)
class PrincipalKey:
    """A secret, and when it was made."""

    secret: bytes
    created_at: datetime | None
    """None: it is derived from the secret key of the server."""

    @property
    def id(self) -> str:
        """Six hexadecimal digits that say nothing about the secret."""
        return hashlib.sha256(b"tooltrail principal key\0" + self.secret).hexdigest()[:6]


def stored_keys() -> Sequence[PrincipalKey]:
    """The keys, newest last, at least one. Raises PrivateFileError."""
    return _stored() or (_first(settings.SECRET_KEY),)


def rotate() -> Sequence[PrincipalKey]:
    """Make a new key and keep the old ones for look-ups. Returns all. Raises PrivateFileError."""
    path = _path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise PrivateFileError(f"{error.strerror}: {error.filename}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # two rotations at once keep both keys
        made = (*stored_keys(), PrincipalKey(os.urandom(_LENGTH), timezone.now()))
        document = [
            {
                "secret": b64encode(key.secret).decode(),
                "created_at": key.created_at and iso(key.created_at),
            }
            for key in made
        ]
        private_files.write(path, json.dumps(document, indent=2).encode())
    finally:
        os.close(descriptor)
    return made


@lru_cache(maxsize=2)
def _first(secret_key: str) -> PrincipalKey:
    derived = hmac.digest(secret_key.encode(), b"tooltrail principal keys", "sha256")
    return PrincipalKey(derived, None)


def _path() -> Path:
    path: Path = settings.PRINCIPAL_KEYS
    return path


def _stored() -> Sequence[PrincipalKey]:
    path = _path()
    try:
        status = path.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise PrivateFileError(f"{error.strerror}: {path}") from error
    return _read(path, status.st_ctime_ns, status.st_ino)


@lru_cache(maxsize=4)  # read again when it was replaced
def _read(path: Path, _changed_ns: int, _inode: int) -> Sequence[PrincipalKey]:
    data = private_files.read(path)
    if data is None:
        return ()
    try:
        return tuple(
            PrincipalKey(
                b64decode(each["secret"]),
                each["created_at"] and datetime.fromisoformat(each["created_at"]),
            )
            for each in json.loads(data)
        )
    except (ValueError, TypeError, KeyError) as error:
        raise PrivateFileError(f"{path} is not a file of keys") from error
