"""Files of JSON lines in S3-compatible storage. A file that is stored is the acknowledgement."""

import zlib
from collections.abc import Sequence
from datetime import UTC
from uuid import UUID

from audit.events.instants import instant_of
from audit.stream.records import Record
from audit.stream.ways.way import SendError
from config.http.bucket import Bucket, BucketError

_GZIP = 31  # zlib's window of 15 bits, with a gzip header
_LEVEL = 3


class FileWay:
    """Collects records, and stores them as one file when they are settled."""

    def __init__(self, bucket: Bucket, prefix: str, *, of: str, stream_id: UUID) -> None:
        self._bucket = bucket
        self._folder = f"{prefix.strip('/')}/{of}".lstrip("/")
        self._stream_id = stream_id
        self._records: list[Record] = []

    def send(self, records: Sequence[Record]) -> None:
        """Keep the records for the next file."""
        self._records += records

    def settle(self) -> None:
        """Store them. The same records have the same name when they are sent again.

        Raises SendError.
        """
        if not self._records:
            return
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        packed = [packer.compress(b"%b\n" % each.body) for each in self._records]
        try:
            self._bucket.put(self._name(), b"".join([*packed, packer.flush()]), "application/gzip")
        except BucketError as error:
            raise SendError(str(error)) from error
        self._records = []

    def close(self) -> None:
        """Close the connections."""
        self._records = []
        self._bucket.close()

    def _name(self) -> str:
        first, last = self._records[0], self._records[-1]
        day = instant_of(first.received_us).astimezone(UTC)
        return (
            f"{self._folder}/{day:%Y/%m/%d}/"
            f"{first.index:015d}-{last.index:015d}-{self._stream_id.hex[-12:]}.ndjson.gz"
        )
