"""Writers that send their requests at the same time."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from tests.support.call_histories import Event
from tests.support.event_requests import Answer, lines, new_batch_id, post
from tests.support.factories import Cast, make_ingest_key

BATCH_MAX = 40  # events in a request before repeats
type Request = tuple[str, bytes, int]  # batch id, body, number of events
type Send = Callable[[Request], Answer]
TRIES = 20


def random_batches(rng: random.Random, events: list[Event]) -> list[Request]:
    """All events in random order, in requests of random size; some occur twice in a request."""
    shuffled = rng.sample(events, len(events))
    requests = []
    while shuffled:
        size = rng.randrange(1, BATCH_MAX)
        batch, shuffled = shuffled[:size], shuffled[size:]
        batch += rng.sample(batch, len(batch) // 5)
        requests.append((new_batch_id(), lines(batch), len(batch)))
    return requests


def sender_in_process(cast: Cast) -> Send:
    """A function that sends a request of this tenant through Django's test client."""
    key = make_ingest_key(cast.tenant)

    def send(request: Request) -> Answer:
        batch_id, body, _ = request
        return post(key, body, idempotency_key=batch_id)

    return send


def write_at_once(writers: list[tuple[Send, list[Request]]]) -> dict[str, list[Answer]]:
    """Send the requests of all writers, one thread each; the answers by batch id."""
    together = threading.Barrier(len(writers))
    answers: dict[str, list[Answer]] = {}

    def write(send: Send, requests: list[Request]) -> None:
        together.wait()
        try:
            for request in requests:
                answers.setdefault(request[0], []).append(send_until_admitted(send, request))
        finally:
            connection.close()  # this thread's

    with ThreadPoolExecutor(len(writers)) as threads:
        for future in [threads.submit(write, *writer) for writer in writers]:
            future.result()
    return answers


def send_until_admitted(send: Send, request: Request) -> Answer:
    """Send as producers do: retry while the server is overloaded, at most `TRIES` times."""
    for _ in range(TRIES):
        answer = send(request)
        if answer.status_code != 503 or answer.json()["code"] != "overloaded":
            break
        time.sleep(float(answer.headers["Retry-After"]))
    return answer
