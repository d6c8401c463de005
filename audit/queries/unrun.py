"""Counts of calls that have decisions and did not run: refused, awaiting, approved.

They are in no other figure: neither completed nor failed, and in no duration. A call is counted
when its latest decision was made, by that decision. Rates are of the calls *asked for*: those that
started and those that did not run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from audit.queries.decisions import newest_decision
from audit.sql.run import rows


@dataclass(slots=True)
class Unrun:
    """Calls that did not run, and the calls of the same range that started."""

    started: int = 0
    by_decision: dict[str, int] = field(default_factory=dict)
    """Calls by their latest decision, by its name in events."""

    @property
    def awaiting(self) -> int:
        """Calls that wait for an approval."""
        return self.by_decision.get("awaiting", 0)

    @property
    def approved(self) -> int:
        """Calls that were approved and have not started."""
        return self.by_decision.get("approved", 0)

    @property
    def refused(self) -> int:
        """Calls whose latest decision is any other."""
        return self.calls - self.awaiting - self.approved

    @property
    def calls(self) -> int:
        """All calls that did not run."""
        return sum(self.by_decision.values())

    @property
    def asked_for(self) -> int:
        """Calls that started and calls that did not run: what the rates are of."""
        return self.started + self.calls

    @property
    def refusal_rate(self) -> float | None:
        """Refused calls of all calls asked for; None without any."""
        return self.refused / self.asked_for if self.asked_for else None


@dataclass(frozen=True, slots=True)
class UnrunCalls:
    """The calls of a range that did not run."""

    total: Unrun
    tools: dict[str, Unrun]
    """By tool: those with such calls, most of them first."""
    newest_decision: datetime | None
    """That of the tenant, at any time."""


def unrun_calls(
    start: datetime, end: datetime, started: Mapping[str, int], *, tool: str | None = None
) -> UnrunCalls:
    """The calls of a range that did not run, of all tools or of one. At most two statements.

    `started` are the calls that started in the range, by tool.
    """
    parameters = {
        "start": start,
        "end": end,
        "first_day": start.astimezone(UTC).date(),
        "last_day": end.astimezone(UTC).date(),
        "tool": tool,
    }
    total = Unrun(sum(started.values()))
    tools: dict[str, Unrun] = {}
    newest = newest_decision()
    may_have_any = newest is not None and newest >= start
    for name, decision, calls in rows("unrun_counted", parameters) if may_have_any else ():
        one = tools.setdefault(name, Unrun(started.get(name, 0)))
        one.by_decision[decision] = calls
        total.by_decision[decision] = total.by_decision.get(decision, 0) + calls
    ordered = sorted(tools.items(), key=lambda item: (-item[1].calls, item[0]))
    return UnrunCalls(total, dict(ordered), newest)
