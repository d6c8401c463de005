"""Objects in S3-compatible storage: put and get, only at addresses that the operator allows.

Requests are signed as AWS's Signature Version 4 has it, and sent by a guarded session: the clients
of AWS and MinIO connect by themselves, unchecked.
"""

from collections.abc import Iterable
from urllib.parse import quote

import requests
from requests_aws4auth import AWS4Auth

from config.env import Opening
from config.http.outbound import guarded_session, one_line, reason_of


class BucketError(Exception):
    """The storage did not do it; the message is for people."""


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
    ) -> None:
        """`ca` has certificates in PEM that are trusted beside those of the system."""
        self._url = f"{endpoint.rstrip('/')}/{quote(name, safe='')}"
        self._session = guarded_session(allowed, ca=ca)
        self._session.auth = AWS4Auth(access_key, secret_key, region, "s3")

    def put(self, key: str, data: bytes, content_type: str) -> None:
        """Store an object, or replace it. Raises BucketError."""
        self._request("PUT", key, data, {"Content-Type": content_type})

    def get(self, key: str) -> bytes:
        """Read an object, of at most what a guarded session takes. Raises BucketError."""
        return self._request("GET", key, None, {})

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _request(self, method: str, key: str, data: bytes | None, headers: dict[str, str]) -> bytes:
        url = f"{self._url}/{quote(key, safe='/-_.~')}"
        try:
            answer = self._session.request(method, url, data=data, headers=headers)
        except requests.RequestException as error:
            raise BucketError(reason_of(error)) from error
        if not 200 <= answer.status_code < 300:
            raise BucketError(f"It answered {answer.status_code}: {one_line(answer.text)}")
        return answer.content
