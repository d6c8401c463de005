"""Random calls and price lists, and what the calls cost by counting them one by one.

The count knows the events as they were sent and the lists as they were saved, and nothing of the
index, of SQL, or of the worker.
"""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from audit.prices import units
from audit.prices.lists import delete_list, find_list, save_list
from audit.queries.price_lists import ToolPrice
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events

TOOLS = ("ocr", "search", "größe", "free")
PATHS = ("output.meta.pages", "output.data.rows", "output.data.rows[*].cost")
_MIDNIGHT = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)
DAYS = [(_MIDNIGHT - timedelta(days=back)).date() for back in (4, 3, 2, 1, 0)]


@dataclass(frozen=True)
class Sent:
    """A completed call as it was sent."""

    at: datetime
    tool: str
    version: str
    agent: str
    trace_id: str
    output: dict[str, Any]


@dataclass
class History:
    """A tenant's calls and lists."""

    cast: Cast
    rng: random.Random
    calls: list[Sent] = field(default_factory=list)
    lists: dict[date, dict[str, ToolPrice]] = field(default_factory=dict)

    @property
    def acts(self) -> list[Callable[[], None]]:
        """What may happen, in any order."""
        return [self.send_calls, self.change_lists, self.count_units]

    def send_calls(self) -> None:
        """Send random calls of the last days, in batches."""
        events: list[dict[str, Any]] = []
        for _ in range(30):
            events += self._call()
        for n in range(0, len(events), 40):
            send_events(self.cast.tenant, events[n : n + 40])

    def _call(self) -> list[dict[str, Any]]:
        rng = self.rng
        kind = rng.choice(("ok", "ok", "ok", "ok", "failed", "cancelled", "open"))
        hours = rng.choice((0, 0, 23.9, rng.uniform(0, 96)))  # often near midnight
        at = min(
            _MIDNIGHT - timedelta(days=rng.randrange(4)) + timedelta(hours=hours),
            datetime.now(UTC) - timedelta(minutes=2),
        )
        at = at.replace(microsecond=rng.randrange(1_000_000))
        rows = [{"cost": rng.choice((1, 0.5, "none", None))} for _ in range(rng.randrange(3))]
        pages = rng.choice((0, 3, 7.25, 0.1, 1e-3, -1, "7", None, True, [1, 2]))
        output: dict[str, Any] = {"status": "ok", "data": {"rows": rows}, "meta": {"pages": pages}}
        if kind == "failed":
            output = {"status": "error", "error": {"type": "FATAL", "message": "no"}}
        sent = Sent(
            at,
            rng.choice(TOOLS),
            rng.choice(("1", "2")),
            rng.choice(("planner", "writer")),
            f"trace-{rng.randrange(5)}",
            output,
        )
        events = make_call(
            invocation_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            started_at=at,
            tool_name=sent.tool,
            tool_version=sent.version,
            trace_id=sent.trace_id,
            is_open=kind == "open",
            output=output,
        )
        events[0]["context"] = {"agent": sent.agent}
        if kind == "cancelled":
            events[1]["call_state"] = "cancelled"
        elif kind != "open":
            self.calls.append(sent)
        return events

    def change_lists(self) -> None:
        """Save or delete a random list."""
        day = self.rng.choice(DAYS)
        with tenant_scope(self.cast.tenant.id):
            stored = find_list(day)
            if stored is not None and self.rng.random() < 0.2:
                delete_list(self.cast.tenant, self.cast.admin, stored)
                del self.lists[day]
                return
            prices = [
                ToolPrice(
                    tool,
                    Decimal(self.rng.randrange(1, 10**9)).scaleb(-self.rng.randrange(12)),
                    self.rng.choice(("", *PATHS)),
                )
                for tool in self.rng.sample(TOOLS[:3], self.rng.randrange(4))
            ]
            now = datetime.now(UTC)
            save_list(self.cast.tenant, self.cast.admin, day, "EUR", prices, now)
        self.lists[day] = {one.tool: one for one in prices}

    def count_units(self) -> None:
        """Let the worker read the log to its end."""
        while units.run_slice(self.cast.tenant.id, seconds=0):
            pass

    def cost(self, of: Callable[[Sent], bool]) -> tuple[int, int, Decimal]:
        """Calls, those of them with a price, and what they cost."""
        chosen = [self._cost_of(call) for call in self.calls if of(call)]
        known = [cost for cost in chosen if cost is not None]
        return len(chosen), len(known), sum(known, Decimal(0))

    def _cost_of(self, call: Sent) -> Decimal | None:
        begun = [day for day in self.lists if day <= call.at.date()]
        price = self.lists[max(begun)].get(call.tool) if begun else None
        if price is None:
            return None
        if not price.path:
            return price.amount
        counted = _units(call.output, price.path)
        return None if counted is None else price.amount * counted


def _units(output: dict[str, Any], path: str) -> Decimal | None:
    data, meta = output.get("data", {}), output.get("meta", {})
    rows = data.get("rows")
    if path == "output.data.rows":
        return None if rows is None else Decimal(len(rows))
    found = [meta["pages"]] if "pages" in meta else []
    if path != "output.meta.pages":
        found = [row["cost"] for row in rows or ()]
    total = Decimal(0)
    for value in found:
        if isinstance(value, list):
            total += len(value)
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            return None
        else:
            total += Decimal(repr(value))
    return total if found else None
