"""The two buckets of the archive, by the settings of the operator. Needs no database."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import unquote
from uuid import UUID, uuid4

from django.conf import settings

from audit.archive.layout import ArchiveError, Pack, keys_prefix, range_of, segment_folder
from audit.archive.packs import KEY_BYTES, NO_KEY, unwrap, without_keys, wrap
from config.boxes import BoxError, open_box
from config.boxes import close as close_box
from config.http.bucket import Bucket, BucketError, Lock, NoObjectError, Version
from config.http.given_urls import checked_url

AWAY = (ArchiveError, BucketError, BoxError)
"""What is raised when the archive cannot be read or written now."""
_OBJECT_MAX = 64 << 20
_BYTES = "application/octet-stream"
_SECRET, _KEYS = ".secret", ".keys"
_ATTEMPTS = 3
_ASKED_EVERY = 100  # deletions
_STILL_THERE = "Keys are still there after they were deleted."

type Check = Callable[[], object]
"""Raises an error if this process may no longer write, because another one may."""


def is_configured() -> bool:
    """Whether the operator has set up an archive on this machine."""
    return bool(settings.ARCHIVE_URL and settings.ARCHIVE_KEYS_URL)


@contextmanager
def opened() -> Iterator["Storage"]:
    """The archive's storage; nothing is connected yet. Raises ArchiveError."""
    if not is_configured():
        raise ArchiveError(
            "This machine has no archive: set TOOLTRAIL_ARCHIVE_URL and TOOLTRAIL_ARCHIVE_KEYS_URL."
        )
    storage = Storage.of_settings()
    try:
        yield storage
    finally:
        storage.close()


class Storage:
    """Records and packs in one bucket, keys in the other. Its methods raise BucketError."""

    def __init__(self, records: Bucket, keys: Bucket, folders: tuple[str, str]) -> None:
        self._records, self._keys = records, keys
        self._folder, self._keys_folder = folders

    @classmethod
    def of_settings(cls) -> Self:
        """Raises ArchiveError if an address is none of a bucket."""
        records, folder = _bucket("TOOLTRAIL_ARCHIVE_URL", settings.ARCHIVE_URL)
        keys, keys_folder = _bucket("TOOLTRAIL_ARCHIVE_KEYS_URL", settings.ARCHIVE_KEYS_URL)
        return cls(records, keys, (folder, keys_folder))

    def check(self) -> None:
        """Raise ArchiveError unless what is archived can be locked, and a key be destroyed."""
        if settings.ARCHIVE_LOCK != "none" and not self._records.can_lock():
            raise ArchiveError(
                "The bucket of TOOLTRAIL_ARCHIVE_URL has no object lock. Create one with it, or set"
                " TOOLTRAIL_ARCHIVE_LOCK=none."
            )
        if self._keys.can_lock():
            raise ArchiveError(
                "The bucket of TOOLTRAIL_ARCHIVE_KEYS_URL has object lock, so no key could be"
                " destroyed. Choose another one, without it."
            )

    def tenants(self) -> list[UUID]:
        """The tenants of which something is archived."""
        listed = []
        for name in self._records.folders(self._folder):
            try:
                listed.append(UUID(name))
            except ValueError:
                continue
        return listed

    def segments(self, tenant_id: UUID) -> list[tuple[int, int]]:
        """The ranges of the tenant's segments, in order. The last one may have no record yet."""
        prefix = f"{self._folder}{tenant_id}/"
        listed = [range_of(name) for name in self._records.folders(prefix)]
        return sorted(each for each in listed if each is not None)

    def put(
        self, tenant_id: UUID, segment: tuple[int, int], name: str, data: bytes, now: datetime
    ) -> None:
        """Store an object of a segment, locked as the operator has it."""
        lock = None
        if settings.ARCHIVE_LOCK != "none":
            until = now + timedelta(days=settings.ARCHIVE_LOCK_DAYS)
            lock = Lock(settings.ARCHIVE_LOCK.upper(), until)
        self._records.put(self._place(tenant_id, segment, name), data, _BYTES, lock=lock)

    def get(self, tenant_id: UUID, segment: tuple[int, int], name: str) -> bytes:
        """Read an object of a segment. Raises NoObjectError, too."""
        return self._records.get(self._place(tenant_id, segment, name))

    def names(self, tenant_id: UUID, segment: tuple[int, int]) -> list[str]:
        """The names of the objects of a segment."""
        folder = self._place(tenant_id, segment, "")
        return [key.removeprefix(folder) for key in self._records.keys(folder)]

    def put_keys(self, tenant_id: UUID, pack: Pack, keys: bytes, may_write: Check) -> str:
        """Store the keys of a pack in two objects, and return how the names of both begin.

        The keys are encrypted with a secret, which is the first object. `may_write` is called when
        that one is stored: if it raises, the keys are not stored. So whoever takes the right to
        write away, lists what is there, and deletes it, knows that nothing readable comes later,
        however late a request is. Raises BoxError, too.
        """
        name = f"{self._keys_place(tenant_id, pack.first_index, pack)}{uuid4().hex}"
        secret = os.urandom(KEY_BYTES)
        self._keys.put(f"{name}{_SECRET}", close_box(box_place(tenant_id, pack), secret), _BYTES)
        may_write()
        self._keys.put(f"{name}{_KEYS}", wrap(secret, keys, box_place(tenant_id, pack)), _BYTES)
        return name

    def get_keys(self, tenant_id: UUID, pack: Pack) -> bytes:
        """The keys of a pack; zeros if they were destroyed. Raises BoxError, too."""
        count = pack.end_index - pack.first_index
        for _ in range(_ATTEMPTS):
            opened_keys = [NO_KEY * count]
            try:
                for name in self._complete(tenant_id, pack):
                    place = box_place(tenant_id, pack)
                    secret = open_box(place, self._keys.get(f"{name}{_SECRET}"))
                    opened_keys.append(unwrap(secret, self._keys.get(f"{name}{_KEYS}"), place))
            except NoObjectError:  # an erasure stores others now
                continue
            if any(len(keys) != count * KEY_BYTES for keys in opened_keys):
                raise ArchiveError("the keys are not those of the pack")
            # Two, if an erasure was interrupted: the larger ones have what it took from the others.
            return max(opened_keys)
        raise BucketError("The keys were replaced while they were read. Try again.")

    def has_keys(self, tenant_id: UUID, pack: Pack) -> bool:
        """Whether any key of a pack is left."""
        return bool(self._complete(tenant_id, pack))

    def destroy_keys(
        self, tenant_id: UUID, pack: Pack, indexes: list[int], may_write: Check
    ) -> int:
        """Destroy the keys of some entries of a pack, in all versions. Returns how many there were.

        `may_write` raises if somebody else may have begun to change these keys. Raises BoxError,
        too.
        """
        prefix = self._keys_place(tenant_id, pack.first_index)
        going = self._keys.versions(prefix)
        may_write()
        keys = self.get_keys(tenant_id, pack)
        left, gone = without_keys(keys, [index - pack.first_index for index in indexes])
        kept = self.put_keys(tenant_id, pack, left, may_write) if any(left) else None
        self._delete(going)
        listed = self._keys.versions(prefix)
        if any(kept is None or not each.key.startswith(kept) for each in listed):
            raise BucketError(_STILL_THERE)
        return gone

    def destroy_pack_keys(self, tenant_id: UUID, pack: Pack) -> None:
        """Destroy the keys of a pack that nobody else writes, in all versions."""
        self._delete(self._keys.versions(self._keys_place(tenant_id, pack.first_index, pack)))

    def destroy_keys_at(self, tenant_id: UUID, first_index: int, may_write: Check) -> None:
        """Destroy the keys of all packs that begin at an index, in all versions."""
        prefix = self._keys_place(tenant_id, first_index)
        self._destroy(lambda: self._keys.versions(prefix), may_write)

    def destroy_keys_from(self, tenant_id: UUID, first_index: int, may_write: Check) -> None:
        """Destroy the keys of all packs from an index on, in all versions."""
        begin = self._keys_place(tenant_id, first_index)
        prefix = f"{self._keys_folder}{tenant_id}/"
        self._destroy(
            lambda: [each for each in self._keys.versions(prefix) if each.key >= begin], may_write
        )

    def close(self) -> None:
        """Close the connections."""
        self._records.close()
        self._keys.close()

    def _destroy(self, find: Callable[[], list[Version]], may_write: Check) -> None:
        """Delete what is found. What others write after `may_write` was asked is not touched."""
        going = find()
        may_write()
        for begin in range(0, len(going), _ASKED_EVERY):
            self._delete(going[begin : begin + _ASKED_EVERY])
            may_write()  # PostgreSQL ends a transaction that is silent for minutes
        if find():
            raise BucketError(_STILL_THERE)

    def _delete(self, versions: list[Version]) -> None:
        for each in versions:
            self._keys.delete(each)

    def _complete(self, tenant_id: UUID, pack: Pack) -> list[str]:
        """How the names of keys begin of which both objects are there."""
        names = set(self._keys.keys(self._keys_place(tenant_id, pack.first_index, pack)))
        begins = [name.removesuffix(_KEYS) for name in names if name.endswith(_KEYS)]
        return [each for each in begins if f"{each}{_SECRET}" in names]

    def _place(self, tenant_id: UUID, segment: tuple[int, int], name: str) -> str:
        return f"{self._folder}{tenant_id}/{segment_folder(*segment)}/{name}"

    def _keys_place(self, tenant_id: UUID, first_index: int, pack: Pack | None = None) -> str:
        return f"{self._keys_folder}{tenant_id}/{keys_prefix(first_index, pack)}"


def _bucket(variable: str, url: str) -> tuple[Bucket, str]:
    """A bucket, and the folder in it with a `/` at its end, or ''."""
    try:
        parts = checked_url(url, may_have_query=False)
    except ValueError as error:
        raise ArchiveError(f"{variable} must be https://HOST/BUCKET. {error}") from None
    name, _, folder = unquote(parts.path).strip("/").partition("/")
    if not name:
        raise ArchiveError(f"{variable} must be https://HOST/BUCKET. It names no bucket.")
    bucket = Bucket(
        f"{parts.scheme}://{parts.netloc}",
        name,
        region=settings.ARCHIVE_REGION,
        access_key=settings.ARCHIVE_ACCESS_KEY,
        secret_key=settings.ARCHIVE_SECRET_KEY,
        allowed=settings.ARCHIVE_ALLOW,
        max_bytes=_OBJECT_MAX,
    )
    return bucket, f"{folder.strip('/')}/" if folder.strip("/") else ""


def box_place(tenant_id: UUID, pack: Pack) -> bytes:
    """What the secret and the keys of a pack are encrypted for."""
    return b"archive" + tenant_id.bytes + pack.first_index.to_bytes(8, "big") + pack.sha256
