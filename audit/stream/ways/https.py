"""HTTPS: JSON lines to any receiver, and Splunk's HTTP Event Collector."""

import time
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
import requests

from audit.stream.records import Record
from audit.stream.ways.way import SendError, bodies
from config.env import Opening
from config.http.outbound import guarded_session, one_line, reason_of

_BODY_BYTES = 800_000
"""Splunk's default limit was a million for long."""
_ACK_WAITS, _ACK_WAIT_S = 60, 0.5


class JsonLinesWay:
    """POST of records, one a line. Any status of 2xx is the acknowledgement."""

    def __init__(
        self, url: str, authorization: str, *, ca: str, allowed: Iterable[Opening]
    ) -> None:
        self._url = url
        self._session = guarded_session(allowed, ca=ca)
        self._headers = {"Content-Type": "application/x-ndjson"}
        if authorization:
            self._headers["Authorization"] = authorization

    def send(self, records: Sequence[Record]) -> None:
        """Send, and wait for the answer. Raises SendError."""
        for some in bodies(records, _BODY_BYTES):
            body = b"\n".join([*(each.body for each in some), b""])
            places = {
                "Tooltrail-First-Index": str(some[0].index),
                "Tooltrail-Last-Index": str(some[-1].index),
            }
            post(self._session, self._url, body, self._headers | places)

    def settle(self) -> None:
        """Nothing is left to wait for."""

    def close(self) -> None:
        """Close the connections."""
        self._session.close()


class SplunkWay:
    """Splunk's HTTP Event Collector. With acknowledgements of the indexer it waits for these."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        channel: UUID,
        has_acks: bool,
        host: str,
        of: str,
        form: str,
        index: str,
        ca: str,
        allowed: Iterable[Opening],
    ) -> None:
        self._url = f"{url.rstrip('/')}/services/collector"
        self._session = guarded_session(allowed, ca=ca)
        self._headers = {"Authorization": f"Splunk {token}", "Content-Type": "application/json"}
        self._query = ""
        if has_acks:
            self._headers["X-Splunk-Request-Channel"] = str(channel)
            self._query = f"?channel={channel}"
        self._has_acks = has_acks
        about = {"host": host, "source": f"tooltrail:{of}", "sourcetype": f"tooltrail:{form}"}
        if index:
            about["index"] = index
        self._about = msgspec.json.encode(about)[1:]
        self._waiting: list[int] = []

    def send(self, records: Sequence[Record]) -> None:
        """Send as events of the collector. Raises SendError."""
        for some in bodies(records, _BODY_BYTES):
            body = b"".join(map(self._event, some))
            answer = _document(post(self._session, f"{self._url}/event", body, self._headers))
            if self._has_acks:
                ack = answer.get("ackId")
                if not isinstance(ack, int):
                    raise SendError("It gives no ackId: its acknowledgements are switched off.")
                self._waiting.append(ack)

    def settle(self) -> None:
        """Ask until the indexer has written all events. Raises SendError."""
        for _ in range(_ACK_WAITS):
            if not self._waiting:
                return
            body = msgspec.json.encode({"acks": self._waiting})
            url = f"{self._url}/ack{self._query}"
            answer = _document(post(self._session, url, body, self._headers)).get("acks")
            states: dict[str, Any] = answer if isinstance(answer, dict) else {}
            self._waiting = [each for each in self._waiting if states.get(str(each)) is not True]
            if self._waiting:
                time.sleep(_ACK_WAIT_S)
        raise SendError("The indexer did not acknowledge all events in time.")

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _event(self, record: Record) -> bytes:
        seconds, rest = divmod(record.received_us, 1_000_000)
        time_of = b"%d.%06d" % (seconds, rest)
        return b'{"time":%b,"event":%b,%b' % (time_of, record.body, self._about)


def post(
    session: requests.Session, url: str, body: bytes, headers: dict[str, str]
) -> requests.Response:
    """Send a body. Raises SendError unless the status is 2xx."""
    try:
        answer = session.post(url, data=body, headers=headers)
    except requests.RequestException as error:
        raise SendError(reason_of(error)) from error
    if not 200 <= answer.status_code < 300:
        raise SendError(f"It answered {answer.status_code}: {one_line(answer.text)}")
    return answer


def _document(answer: requests.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except (ValueError, RecursionError):
        document = None
    return document if isinstance(document, dict) else {}
