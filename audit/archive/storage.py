"""The two buckets of the archive, by the settings of the operator. Needs no database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import unquote, urlsplit
from uuid import UUID

from django.conf import settings

from audit.archive.layout import ArchiveError, keys_name, range_of, segment_folder
from audit.archive.packs import KEY_BYTES, NO_KEY, without_keys
from config.boxes import BoxError, open_box
from config.boxes import close as close_box
from config.http.bucket import Bucket, BucketError, Lock, NoObjectError, Version

AWAY = (ArchiveError, BucketError, BoxError)
"""What is raised when the archive cannot be read or written now."""
_OBJECT_MAX = 64 << 20
_BYTES = "application/octet-stream"


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

    def put_keys(self, tenant_id: UUID, first_index: int, keys: bytes) -> None:
        """Store the keys of a pack, encrypted. Only this version stays. Raises BoxError, too."""
        name = self._keys_place(tenant_id, first_index)
        box = close_box(_box_place(tenant_id, first_index), keys)
        kept = self._keys.put(name, box, _BYTES)
        self._destroy(name, Version(name, kept))

    def get_keys(self, tenant_id: UUID, first_index: int, count: int) -> bytes:
        """The keys of a pack of `count` entries; zeros if they were destroyed. Raises BoxError."""
        try:
            box = self._keys.get(self._keys_place(tenant_id, first_index))
        except NoObjectError:
            return NO_KEY * count
        keys = open_box(_box_place(tenant_id, first_index), box)
        if len(keys) != count * KEY_BYTES:
            raise ArchiveError("the keys are not those of the pack")
        return keys

    def destroy_keys(
        self, tenant_id: UUID, first_index: int, count: int, indexes: list[int]
    ) -> int:
        """Destroy the keys of some entries of a pack, in all versions. Returns how many there were.

        Raises BoxError, too.
        """
        keys = self.get_keys(tenant_id, first_index, count)
        left, gone = without_keys(keys, [index - first_index for index in indexes])
        if not any(left):
            self.destroy_pack_keys(tenant_id, first_index)
        else:  # also if none is left to destroy: older versions may be there, after a failure
            self.put_keys(tenant_id, first_index, left)
        return gone

    def destroy_pack_keys(self, tenant_id: UUID, first_index: int) -> None:
        """Destroy all keys of a pack, in all versions."""
        self._destroy(self._keys_place(tenant_id, first_index))

    def destroy_keys_from(self, tenant_id: UUID, first_index: int) -> int:
        """Destroy the keys of all packs from an index on. Returns of how many packs."""
        prefix = f"{self._keys_folder}{tenant_id}/"
        begin = self._keys_place(tenant_id, first_index)
        going = [each for each in self._keys.versions(prefix) if each.key >= begin]
        for each in going:
            self._keys.delete(each)
        if any(each.key >= begin for each in self._keys.versions(prefix)):
            raise BucketError("Keys are still there after they were deleted.")
        return len({each.key for each in going})

    def close(self) -> None:
        """Close the connections."""
        self._records.close()
        self._keys.close()

    def _destroy(self, name: str, kept: Version | None = None) -> None:
        """Delete all versions of an object but one, and check that they are gone."""
        for _ in range(2):
            others = [each for each in self._keys.versions(name) if each.key == name]
            others = [each for each in others if each != kept]
            for each in others:
                self._keys.delete(each)
            if not others:
                return
        left = [each for each in self._keys.versions(name) if each.key == name and each != kept]
        if left:
            raise BucketError("An older version of the keys is still there after it was deleted.")

    def _place(self, tenant_id: UUID, segment: tuple[int, int], name: str) -> str:
        return f"{self._folder}{tenant_id}/{segment_folder(*segment)}/{name}"

    def _keys_place(self, tenant_id: UUID, first_index: int) -> str:
        return f"{self._keys_folder}{tenant_id}/{keys_name(first_index)}"


def _bucket(variable: str, url: str) -> tuple[Bucket, str]:
    """A bucket, and the folder in it with a `/` at its end, or ''."""
    parts = urlsplit(url)
    name, _, folder = unquote(parts.path).strip("/").partition("/")
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not name
        or "@" in parts.netloc
    ):
        raise ArchiveError(f"{variable} must be the address of a bucket: https://HOST/BUCKET.")
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


def _box_place(tenant_id: UUID, first_index: int) -> bytes:
    return b"archive" + tenant_id.bytes + first_index.to_bytes(8, "big")
