"""Calls of `/mcp` recorded as calls of a tenant that the operator names: Tooltrail on itself.

A thread stores them after the answer, through the same intake as events of executors. It waits for
nobody, and nobody waits for it: what does not fit into its line, or cannot be stored, is declared
as a gap.

Members of that tenant are not members of the tenant that asked. So arguments and results are kept
as digest and size only. Digests are keyed: who guesses an argument cannot confirm the guess.
"""

import json
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone
from django.utils.crypto import salted_hmac

from audit.events.batch_ids import BatchId
from audit.events.body import split_lines
from audit.intake.admission import OverloadedError
from audit.intake.group_commit import GROUP_COMMIT
from audit.intake.ingest import read_request
from audit.mcp.caller import Caller
from config.version import VERSION
from tenants.actions import storable_text
from tenants.keys import ApiKeyIdentity
from tenants.models import Tenant, new_id

WAITING_MAX: Final = 100
"""Calls that wait to be stored. Each holds its result, of at most 75 kB, until then."""
_TOGETHER: Final = 50
"""Calls of one batch."""
_TRIES: Final = 3
_PAUSE_S: Final = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of a tool of `/mcp`, as it ended."""

    caller: Caller
    tool: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any] | None
    """Of `tools/call`; None: it raised an exception."""
    client: str
    client_version: str
    started_at: datetime
    seconds: float


class OwnCalls:
    """The calls of one process on their way to the tenant: a producer of its own."""

    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._line: queue.Queue[OwnCall] = queue.Queue(waiting_max)
        self._lock = threading.Lock()
        self._is_storing = False
        self._dropped: Counter[UUID] = Counter()
        """Calls without numbers that are lost, by the tenant that asked."""
        self._is_warned = False
        self._producer_id = f"mcp-{token_hex(8)}"
        self._next = 1
        """The number of the next event."""
        self._lost_from: int | None = None
        """All events from this number on are lost, and not declared yet."""

    def add(self, call: OwnCall) -> None:
        """Record a call soon, if the operator named a tenant. Does not wait."""
        if not settings.MCP_TENANT:
            return
        with self._lock:
            if not self._is_storing:  # not in __init__: the process may fork after it
                self._is_storing = True
                threading.Thread(target=self._run, name="mcp-calls", daemon=True).start()
            try:
                self._line.put_nowait(call)
            except queue.Full:
                self._dropped[call.caller.tenant_id] += 1

    def _run(self) -> None:
        while True:
            calls = [self._line.get()]
            while len(calls) < _TOGETHER and not self._line.empty():
                calls.append(self._line.get())
            try:
                self._record(calls)
            except Exception:  # the thread goes on with the next calls
                _log.warning("%d calls of /mcp were not recorded", len(calls), exc_info=True)
            finally:
                connections.close_all()

    def _record(self, calls: Sequence[OwnCall]) -> None:
        tenant_id = self._tenant_of(calls)
        if tenant_id is None:
            return
        with self._lock:
            dropped, self._dropped = self._dropped, Counter()
        # Who reads the record of the record would make it grow by reading.
        del dropped[tenant_id]
        others = [call for call in calls if call.caller.tenant_id != tenant_id]
        if dropped and self._lost_from is None:
            self._lost_from = self._next
        self._next += 2 * dropped.total()
        if not others:
            return
        events, first = self._gap(), self._next
        for call in others:
            events += _events_of(call, self._producer_id, self._next)
            self._next += 2
        try:
            _store(tenant_id, events)
        except Exception:
            self._lost_from = self._lost_from or first
            raise
        self._lost_from = None

    def _tenant_of(self, calls: Sequence[OwnCall]) -> UUID | None:
        """The tenant that has the calls; None if there is no such tenant or it is suspended."""
        try:
            tenant = Tenant.objects.filter(slug=settings.MCP_TENANT, suspended_at=None).first()
        except Exception:
            with self._lock:
                self._dropped.update(call.caller.tenant_id for call in calls)
            raise
        if tenant is None and not self._is_warned:
            _log.warning("TOOLTRAIL_MCP_TENANT names no active tenant: no call is recorded")
        self._is_warned = tenant is None
        return None if tenant is None else tenant.id

    def _gap(self) -> list[dict[str, Any]]:
        if self._lost_from is None:
            return []
        return [
            {
                "type": "gap",
                "event_id": str(new_id()),
                "producer_id": self._producer_id,
                "from_seq": self._lost_from,
                "to_seq": self._next - 1,
                "count": self._next - self._lost_from,
                "reason": "not_recorded",
            }
        ]


OWN_CALLS: Final = OwnCalls()


def _store(tenant_id: UUID, events: Sequence[Mapping[str, Any]]) -> None:
    """Store events as one batch. Raises what the intake raises when it cannot after all tries."""
    body = b"\n".join(json.dumps(event).encode() for event in events)
    batch = BatchId(new_id())
    for left in reversed(range(_TRIES)):
        try:
            lines = split_lines(body)
            GROUP_COMMIT.store(read_request(tenant_id, body, lines, batch, timezone.now()))
            return
        except (OperationalError, InterfaceError, OverloadedError):
            if not left:
                raise
            connections.close_all()
            time.sleep(_PAUSE_S)


def _events_of(call: OwnCall, producer_id: str, number: int) -> list[dict[str, Any]]:
    """The start and the end of a call, with two numbers of the producer."""
    pk = str(new_id())
    arguments = _measured(call.caller, {"tool": call.tool, "arguments": call.arguments})
    client = {"name": storable_text(call.client) or "unnamed"}
    if call.client_version:
        client["version"] = storable_text(call.client_version)
    shared = {
        "invocation_id": pk,
        "trace_id": pk,  # MCP does not say which calls belong together
        "call_id": arguments["digest"],
        "tool_name": call.tool,
        "tool_version": VERSION,
        "started_at": call.started_at.isoformat(),
        "mcp": {"client": client, "server": {"name": "tooltrail", "version": VERSION}},
        "producer_id": producer_id,
    }
    start = {
        "type": "toolExecutionStart",
        **shared,
        "event_id": str(new_id()),
        "producer_seq": number,
        "context": {"principal": _principal(call.caller)},
        "args": arguments,
    }
    end = {
        "type": "toolExecutionEnd",
        **shared,
        "event_id": str(new_id()),
        "producer_seq": number + 1,
        "ended_at": (call.started_at + timedelta(seconds=call.seconds)).isoformat(),
        "duration_ms": call.seconds * 1000,
        "is_error": call.result is None or call.result["isError"],
        **({} if call.result is None else {"output": _measured(call.caller, call.result)}),
    }
    return [start, end]


def _principal(caller: Caller) -> str:
    """A pseudonym: the id of the key or of the account."""
    return f"key {caller.caller}" if isinstance(caller, ApiKeyIdentity) else caller.caller


def _measured(caller: Caller, value: Any) -> dict[str, Any]:
    """What is kept of a value: a digest that only this installation can make, and its size."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    digest = salted_hmac(f"{__name__} {caller.tenant_id}", text, algorithm="sha256").hexdigest()
    return {"digest": digest, "bytes": len(text)}
