"""Objects in S3-compatible storage, only at addresses that the operator allows.

Requests are signed as AWS's Signature Version 4 has it, and sent by a guarded session: the clients
of AWS and MinIO connect by themselves, unchecked.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import md5
from typing import NamedTuple
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import requests
from requests_aws4auth import AWS4Auth

from config.env import Opening
from config.http.outbound import ANSWER_MAX_BYTES, guarded_session, one_line, reason_of

WITHOUT_VERSIONS = "null"
"""The version of an object in a bucket without versioning."""


class BucketError(Exception):
    """The storage did not do it; the message is for people."""


class NoObjectError(BucketError):
    """The object, or what was asked about the bucket, does not exist."""


@dataclass(frozen=True, slots=True)
class Lock:
    """Object lock: nobody may delete the version before an instant."""

    mode: str
    """`GOVERNANCE`: those with a special right may; `COMPLIANCE`: nobody may."""
    until: datetime


class Version(NamedTuple):
    """A version of an object, or a marker that says that it was deleted."""

    key: str
    id: str


class Bucket:
    """One bucket, addressed by path: `<endpoint>/<bucket>/<key>`. One thread at a time."""

    def __init__(
        self,
        endpoint: str,
        name: str,
        *,
        region: str,
        access_key: str,
        secret_key: str,
        allowed: Iterable[Opening],
        ca: str = "",
        max_bytes: int = ANSWER_MAX_BYTES,
    ) -> None:
        """`ca` has certificates in PEM that are trusted beside those of the system.

        `max_bytes` is the size of the largest object that is read.
        """
        self._url = f"{endpoint.rstrip('/')}/{quote(name, safe='')}"
        self._session = guarded_session(allowed, ca=ca, max_bytes=max_bytes)
        self._session.auth = AWS4Auth(access_key, secret_key, region, "s3")

    def put(self, key: str, data: bytes, content_type: str, *, lock: Lock | None = None) -> str:
        """Store an object, or replace it; the id of its version. Raises BucketError."""
        headers = {"Content-Type": content_type}
        if lock is not None:
            until = lock.until.astimezone(UTC)
            digest = md5(data, usedforsecurity=False).digest()  # S3 demands it with a lock
            headers |= {
                "Content-MD5": b64encode(digest).decode(),
                "x-amz-object-lock-mode": lock.mode,
                "x-amz-object-lock-retain-until-date": f"{until:%Y-%m-%dT%H:%M:%SZ}",
            }
        answer = self._request("PUT", key, data=data, headers=headers)
        return answer.headers.get("x-amz-version-id") or WITHOUT_VERSIONS

    def get(self, key: str) -> bytes:
        """Read an object of at most `max_bytes`. Raises NoObjectError, BucketError."""
        return self._request("GET", key).content

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that begin with a prefix, in order. Raises BucketError."""
        token = ""
        while True:
            query = {"list-type": "2", "prefix": prefix}
            root = self._listed(query | ({"continuation-token": token} if token else {}))
            for each in root.iterfind("{*}Contents/{*}Key"):
                yield each.text or ""
            token = root.findtext("{*}NextContinuationToken") or ""
            if not token:
                return

    def folders(self, prefix: str) -> Iterator[str]:
        """The names between a prefix and the next `/`, in order. Raises BucketError."""
        token = ""
        while True:
            query = {"list-type": "2", "prefix": prefix, "delimiter": "/"}
            root = self._listed(query | ({"continuation-token": token} if token else {}))
            for each in root.iterfind("{*}CommonPrefixes/{*}Prefix"):
                yield (each.text or "").removeprefix(prefix).rstrip("/")
            token = root.findtext("{*}NextContinuationToken") or ""
            if not token:
                return

    def versions(self, prefix: str) -> list[Version]:
        """All versions of objects whose keys begin with a prefix. Raises BucketError."""
        listed: list[Version] = []
        after: dict[str, str] = {}
        while True:
            root = self._listed({"versions": "", "prefix": prefix} | after)
            for tag in ("Version", "DeleteMarker"):
                for each in root.iterfind(f"{{*}}{tag}"):
                    id_of = each.findtext("{*}VersionId") or WITHOUT_VERSIONS
                    listed.append(Version(each.findtext("{*}Key") or "", id_of))
            if root.findtext("{*}IsTruncated") != "true":
                return listed
            after = {
                "key-marker": root.findtext("{*}NextKeyMarker") or "",
                "version-id-marker": root.findtext("{*}NextVersionIdMarker") or "",
            }

    def delete(self, version: Version) -> None:
        """Delete one version for ever. Raises BucketError, if it is locked, too."""
        self._request("DELETE", version.key, query={"versionId": version.id})

    def can_lock(self) -> bool:
        """Whether objects of the bucket can be locked. Raises BucketError."""
        try:
            root = self._listed({"object-lock": ""})
        except NoObjectError as error:
            if "ObjectLockConfigurationNotFound" in str(error):
                return False
            raise
        return root.findtext("{*}ObjectLockEnabled") == "Enabled"

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _listed(self, query: dict[str, str]) -> ElementTree.Element:
        """The XML that answers a question about the bucket."""
        text = self._request("GET", "", query=query).content
        try:
            if b"<!" in text:  # no declarations, so no entities
                raise BucketError("It answered with XML that storage does not send.")
            return ElementTree.fromstring(text)  # noqa: S314  # as above
        except ElementTree.ParseError as error:
            raise BucketError("It answered with something that is not XML.") from error

    def _request(
        self,
        method: str,
        key: str,
        *,
        query: dict[str, str] | None = None,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        url = f"{self._url}/{quote(key, safe='/-_.~')}" if key else self._url
        if query:
            url += f"?{urlencode(query, quote_via=quote)}"
        try:
            answer = self._session.request(method, url, data=data, headers=headers)
        except requests.RequestException as error:
            raise BucketError(reason_of(error)) from error
        if not 200 <= answer.status_code < 300:
            of = NoObjectError if answer.status_code == 404 else BucketError
            raise of(f"It answered {answer.status_code}: {one_line(answer.text)}")
        return answer
