"""Events cut into requests at random, in any order and with repeats."""

import random
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from audit.events.batch_ids import choose_batch_id
from audit.events.body import split_lines
from tenants.models import Tenant
from tests.support.batches import record_batch
from tests.support.call_histories import Event
from tests.support.event_requests import lines, new_batch_id


def random_requests(rng: random.Random, events: list[Event]) -> Iterator[list[Event]]:
    """All events in random order, some twice, in one to four requests."""
    some = rng.sample(events, rng.randrange(len(events)))
    shuffled = rng.sample(events + some, len(events) + len(some))
    cuts = sorted(rng.sample(range(1, len(shuffled)), rng.randrange(4)))
    for start, end in zip([0, *cuts], [*cuts, len(shuffled)], strict=True):
        yield shuffled[start:end]


def record_request(tenant: Tenant, events: list[Event]) -> dict[str, Any]:
    """Record events as one request; the parsed answer."""
    body = lines(events)
    now = timezone.now()
    batch_id = choose_batch_id(new_batch_id(), now)
    return record_batch(tenant.id, body, split_lines(body), batch_id, now)
