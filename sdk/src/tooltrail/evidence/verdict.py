"""The result of checking a bundle, in words that need no knowledge of trees and hashes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

PROBLEMS_SHOWN = 20
"""Per check; further problems are only counted."""

type Result = Literal["verified", "failed", "not checked"]


@dataclass(slots=True)
class Check:
    """One check of a bundle."""

    name: str
    message: str = ""
    """In plain words: what holds if it is verified, or why it was not checked."""
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    is_checked: bool = True

    def fail(self, problem: str) -> None:
        """Add a problem; the check fails."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(problem)

    def skip(self, why: str) -> None:
        """Mark the check as impossible, with the reason."""
        self.is_checked, self.message = False, why

    @property
    def result(self) -> Result:
        """The result of the check."""
        if self.problem_count:
            return "failed"
        return "verified" if self.is_checked else "not checked"


@dataclass(slots=True)
class Verdict:
    """What was verified of a bundle, which problems it has, and what cannot be verified."""

    origin: str
    tenant: str
    first_index: int
    end_index: int
    start: str | None
    end: str | None
    checks: list[Check]
    events: int = 0
    erased: int = 0
    size: int | None = None
    """Entries of the ledger at the largest checkpoint."""
    root: str | None = None
    keys: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    """What a bundle cannot show."""
    is_undecided: bool = False
    """Whether something that the user requested could not be checked."""

    @property
    def is_genuine(self) -> bool:
        """Whether no check failed."""
        return not any(check.problem_count for check in self.checks)

    def document(self) -> dict[str, Any]:
        """The whole verdict as JSON values."""
        return {
            "genuine": self.is_genuine,
            "origin": self.origin,
            "tenant": self.tenant,
            "from": self.start,
            "to": self.end,
            "first_index": self.first_index,
            "end_index": self.end_index,
            "events": self.events,
            "erased": self.erased,
            "checkpoint": None if self.size is None else {"size": self.size, "root": self.root},
            "keys": self.keys,
            "checks": [
                {
                    "name": check.name,
                    "result": check.result,
                    "message": check.message,
                    "problems": check.problems,
                    "problem_count": check.problem_count,
                }
                for check in self.checks
            ],
            "cannot_be_verified": self.limits,
        }

    def lines(self) -> Iterator[str]:
        """The whole verdict as lines for people."""
        yield f"Ledger   {self.origin} ({self.tenant})"
        if self.start and self.end:
            yield f"Range    received from {self.start} to {self.end}"
        count = self.end_index - self.first_index
        last = f" to {self.end_index - 1:,}" if count else ""
        yield f"Entries  {count:,}: {self.first_index:,}{last}; {self.erased:,} erased"
        yield ""
        for check in self.checks:
            mark = {"verified": "ok    ", "failed": "FAILED", "not checked": "-     "}[check.result]
            if check.result != "failed":
                yield f"{mark}  {check.name}: {check.message}"
                continue
            yield f"{mark}  {check.name}:"
            yield from (f"          {problem}" for problem in check.problems)
            if more := check.problem_count - len(check.problems):
                yield f"          and {more:,} more"
        yield ""
        yield "Not covered by this check:"
        yield from (f"  - {limit}" for limit in self.limits)
        yield ""
        if not self.is_genuine:
            yield "NOT GENUINE: the bundle does not match the ledger."
        elif self.is_undecided:
            yield "No alteration found, but not all requested checks were possible."
        else:
            yield "Genuine: all checks passed."
