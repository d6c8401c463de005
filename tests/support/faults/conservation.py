"""The equation of every run: emitted = filled slots + duplicates + inbox + declared gaps.

What was emitted is known from the executors' journals, written without the SDK; what arrived
is counted from the log, the inbox and the gaps of the tenant, not from any answer. Duplicates
count as arrived: an event that arrived twice was emitted once.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audit.log.payload import unpack
from audit.models import Batch, Gap, Invocation, RejectedEvent
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.recount import assert_consistent

type CallKey = tuple[str, int]
"""A run (one thread of one process) and the number of its call."""


@dataclass
class Emitted:
    """What executors did, from their journals."""

    started: set[CallKey] = field(default_factory=set)
    confirmed: set[CallKey] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path) -> "Emitted":
        """All journals of a folder; a line cut off by a kill is ignored."""
        emitted = cls()
        for path in folder.iterdir():
            for line in path.read_bytes().split(b"\n")[:-1]:
                kind, run, n = line.decode().split()
                (emitted.started if kind == "s" else emitted.confirmed).add((run, int(n)))
        return emitted


@dataclass
class Arrived:
    """What the tenant has, event by event."""

    logged: Counter[tuple[str, int]] = field(default_factory=Counter)  # by producer and number
    inbox: set[tuple[str, int]] = field(default_factory=set)
    conflicts: int = 0
    declared: set[tuple[str, int]] = field(default_factory=set)
    gap_lines: int = 0
    starts: set[CallKey] = field(default_factory=set)
    ends: set[CallKey] = field(default_factory=set)
    slots: int = 0
    gaps: int = 0

    @classmethod
    def read(cls, tenant: Tenant) -> "Arrived":
        arrived = cls()
        with tenant_scope(tenant.id):
            for batch in Batch.objects.for_tenant(tenant.id).iterator():
                assert batch.payload is not None
                for _, raw in unpack(bytes(batch.payload)):
                    arrived._log(raw)
            for rejected in RejectedEvent.objects.for_tenant(tenant.id).iterator():
                event = json.loads(bytes(rejected.raw))
                arrived.inbox.add((event["producer_id"], event["producer_seq"]))
                arrived._note_call(event)
                arrived.conflicts += rejected.code == "conflict"
            for gap in Gap.objects.for_tenant(tenant.id).iterator():
                arrived.gaps += 1
                numbers = range(gap.from_seq, gap.to_seq + 1)
                arrived.declared |= {(gap.producer_id, number) for number in numbers}
            calls = Invocation.objects.for_tenant(tenant.id)
            arrived.slots += calls.filter(start_batch_id__isnull=False).count()
            arrived.slots += calls.filter(end_batch_id__isnull=False).count()
        return arrived

    def _log(self, raw: bytes) -> None:
        event = json.loads(raw)
        if event["type"] == "gap":
            self.gap_lines += 1
            return
        self.logged[event["producer_id"], event["producer_seq"]] += 1
        self._note_call(event)

    def _note_call(self, event: dict[str, Any]) -> None:
        is_end = event["type"] == "toolExecutionEnd"
        payload = event["output"].get("data") if is_end else event["args"]
        if payload is not None:  # else it was dropped, because the spool was full
            (self.ends if is_end else self.starts).add((payload["run"], payload["n"]))

    @property
    def numbers(self) -> set[tuple[str, int]]:
        """Every known event: stored, in the inbox or declared lost."""
        return set(self.logged) | self.inbox | self.declared


@dataclass(frozen=True)
class Balance:
    """The terms of the equation, in events."""

    emitted: int
    slots: int
    duplicates: int
    inbox: int
    lost: int
    calls_lost: int  # of those that had returned to their caller

    def __str__(self) -> str:
        return (
            f"{self.emitted} emitted = {self.slots} slots + {self.inbox} inbox + "
            f"{self.lost} declared lost; {self.duplicates} duplicates"
        )


def assert_conserved(tenant: Tenant, journals: Path) -> Balance:
    """Fail unless every event emitted is in its slot, in the inbox or declared lost, once."""
    emitted, arrived = Emitted.read(journals), Arrived.read(tenant)
    assert emitted.started >= emitted.confirmed != set(), "the executors did something"

    # Of each producer all numbers are accounted for, from the first to the last.
    highest: dict[str, int] = defaultdict(int)
    for producer, number in arrived.numbers:
        highest[producer] = max(highest[producer], number)
    missing = {(p, n) for p, last in highest.items() for n in range(last)} - arrived.numbers
    assert not missing, f"silently lost: {sorted(missing)[:10]}"

    # They are as many as the executors' own journals say: two events a call.
    count = len(arrived.numbers)
    assert 2 * len(emitted.confirmed) <= count <= 2 * len(emitted.started)

    # The log and its index agree: each event fills one slot, a repeated one is a duplicate.
    lost = len(arrived.declared - set(arrived.logged) - arrived.inbox)
    only_in_inbox = len(arrived.inbox - set(arrived.logged))
    duplicates = arrived.logged.total() - arrived.slots - arrived.conflicts
    calls_lost = len(emitted.confirmed - (arrived.starts & arrived.ends))
    balance = Balance(count, arrived.slots, duplicates, only_in_inbox, lost, calls_lost)
    assert balance.emitted == balance.slots + balance.inbox + balance.lost, balance
    assert duplicates == arrived.logged.total() - len(arrived.logged)
    assert arrived.conflicts == 0
    assert arrived.gap_lines >= arrived.gaps

    # And they are the same calls.
    assert arrived.starts | arrived.ends <= emitted.started
    assert calls_lost <= lost
    assert_consistent(tenant)
    return balance
