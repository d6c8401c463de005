"""Requests to a whole installation, over HTTP."""

import json
import threading
from collections import Counter
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tests.support.factories import make_call


class _KeepRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        return None


# Each new one reads all certificates of the system, which takes longer than a request.
_OPENER = build_opener()
_KEEPS_REDIRECTION = build_opener(_KeepRedirection)


def status_code(url: str, **headers: str) -> int:
    """The status code of a GET; redirections are not followed."""
    try:
        with _KEEPS_REDIRECTION.open(Request(url, headers=headers)) as answer:
            code: int = answer.status
            return code
    except HTTPError as error:
        with error:
            return error.code


def post_events(facts: dict[str, str], events: list[dict[str, Any]]) -> int:
    """Send events with the installation's key; the status code, 0 if the connection was closed."""
    body = "\n".join(json.dumps(event) for event in events).encode()
    headers = {
        "Authorization": f"Bearer {facts['api_key']}",
        "Content-Type": "application/x-ndjson",
    }
    request = Request(facts["url"] + "/api/v1/events", data=body, headers=headers)
    try:
        with _OPENER.open(request) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code
    except (URLError, ConnectionError):
        return 0


class Senders:
    """Threads that send requests with one call each until the block ends."""

    def __init__(self, facts: dict[str, str], count: int = 2) -> None:
        self.answers: Counter[int] = Counter()
        self._facts = facts
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(count)]

    def __enter__(self) -> "Senders":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        while not self._over.is_set():
            self.answers[post_events(self._facts, make_call())] += 1
