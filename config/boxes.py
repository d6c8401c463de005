"""Encrypted secrets: the keys are in a file, not in the database or its backups.

The file (`TOOLTRAIL_ENCRYPTION_KEYS`) has a key in each line (base64 of 32 bytes). The first one
encrypts, all decrypt. Web servers and workers of all hosts need the same file. Without a file, the
first that needs a key makes one. A box is the key's id, a nonce and the text encrypted with
ChaCha20-Poly1305; it can be opened only for the place that it was made for, such as a channel.
Secrets that need not be stored are derived from the first key.
"""

import hashlib
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from config.private_files import PrivateFileError, create, read

_KEY_BYTES = 32
_ID_BYTES = 8
_NONCE_BYTES = 12


class BoxError(Exception):
    """A secret cannot be encrypted or decrypted; the message is one line for people."""


def close(place: bytes, text: bytes) -> bytes:
    """Encrypt a text for a place. Raises BoxError."""
    key = _keys()[0]
    nonce = os.urandom(_NONCE_BYTES)
    return _id(key) + nonce + ChaCha20Poly1305(key).encrypt(nonce, text, place)


def open_box(place: bytes, box: bytes) -> bytes:
    """The text of a box that was made for this place. Raises BoxError."""
    key_id, rest = box[:_ID_BYTES], box[_ID_BYTES:]
    key = next((key for key in _keys() if _id(key) == key_id), None)
    if key is None:
        raise BoxError("The secret was encrypted with a key that this machine does not have.")
    try:
        return ChaCha20Poly1305(key).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], place)
    except InvalidTag as error:
        raise BoxError("The secret was altered.") from error


def close_members(place: bytes, members: Mapping[str, str]) -> bytes | None:
    """Encrypt named secrets together for a place; None without one. Raises BoxError."""
    return close(place, json.dumps(dict(members)).encode()) if members else None


def open_members(place: bytes, box: bytes | memoryview | None) -> dict[str, str]:
    """The named secrets of a box that was made for this place; none without a box.

    Raises BoxError.
    """
    if box is None:
        return {}
    members: dict[str, str] = json.loads(open_box(place, bytes(box)))
    return members


def derive(purpose: bytes) -> bytes:
    """A secret of 32 bytes for a purpose, by HKDF (RFC 5869). Another first key, another secret.

    Raises BoxError.
    """
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"tooltrail\n" + purpose).derive(_keys()[0])


def _keys() -> list[bytes]:
    path: Path = settings.ENCRYPTION_KEYS
    try:
        text = read(path)
        if text is None:
            create(path, b64encode(os.urandom(_KEY_BYTES)) + b"\n")
            text = read(path)  # another process may have been first
        keys = [b64decode(line, validate=True) for line in (text or b"").split()]
    except PrivateFileError as error:
        raise BoxError(str(error)) from error
    except ValueError as error:
        raise BoxError(f"{path} is not a file of keys") from error
    if not keys or any(len(key) != _KEY_BYTES for key in keys):
        raise BoxError(f"{path} is not a file of keys")
    return keys


def _id(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:_ID_BYTES]
