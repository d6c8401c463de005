"""Counts the results of a replay so far: calls by outcome, and kinds of violations. Pure.

The size is bounded whatever the payloads hold: since a path may name any member of an output, only
the first `KINDS_MAX` kinds of each side are counted separately, each with a few sample calls.
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, Final, Literal
from uuid import UUID

from audit.events.judgement import PASSED, Kind, Verdict
from audit.events.outputs import Side

KINDS_MAX: Final = 200
SAMPLES_MAX: Final = 5

Change = Literal["new", "gone"]


@dataclass(slots=True)
class KindTally:
    """One kind of violation: how many calls have it under which contract."""

    path: str
    code: str
    new: int = 0
    """Calls with it under the draft but not under the current version."""
    gone: int = 0
    """Calls with it under the current version but not under the draft."""
    still: int = 0
    known: int = 0
    """Calls whose executor recorded it."""
    cured: int = 0
    """Of these, calls where the draft no longer finds it."""
    samples: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """The newest calls as samples, by `new`, `gone` and `cured`: day and id."""

    def sample(self, what: str, call: tuple[str, str]) -> None:
        samples = self.samples.setdefault(what, [])
        if len(samples) < SAMPLES_MAX:
            samples.append(call)


@dataclass(slots=True)
class SideTally:
    """The calls of one side: each is in one of the first four counts or in `skipped`."""

    passing: int = 0
    newly_violating: int = 0
    newly_passing: int = 0
    still_violating: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Calls that were not judged, by reason."""
    known: int = 0
    """Calls with recorded violations."""
    cured: int = 0
    """Of these, calls in which the draft finds no violation."""
    kinds: list[KindTally] = field(default_factory=list)
    further: int = 0
    """How often a kind beyond `KINDS_MAX` occurred."""

    @property
    def judged(self) -> int:
        """Calls that were judged."""
        return self.passing + self.newly_violating + self.newly_passing + self.still_violating


class Tally:
    """The counts of both sides; calls are added one by one."""

    def __init__(
        self,
        sides: dict[Side, SideTally] | None = None,
        regression: dict[str, Any] | None = None,
    ) -> None:
        self.sides: dict[Side, SideTally] = sides or {"output": SideTally(), "args": SideTally()}
        self.regression = regression
        """Of the tool's regression set (`audit.work.regression.judge_set`), when all is read."""
        self._kinds = {
            (side, Kind(kind.path, kind.code)): kind
            for side, tally in self.sides.items()
            for kind in tally.kinds
        }

    def add(self, side: Side, verdict: Verdict | str, day: date, invocation_id: UUID) -> None:
        """Count one judged event."""
        tally = self.sides[side]
        if verdict is PASSED:
            tally.passing += 1
            return
        if isinstance(verdict, str):
            tally.skipped[verdict] = tally.skipped.get(verdict, 0) + 1
            return
        now, then, known, cured = verdict
        if now:
            tally.still_violating += bool(then)
            tally.newly_passing += not then
        else:
            tally.newly_violating += bool(then)
            tally.passing += not then
        tally.known += bool(known)
        tally.cured += bool(known) and not then
        call = (day.isoformat(), str(invocation_id))
        for kind in sorted(now | then | known):
            count = self._kind(side, kind)
            if count is None:
                continue
            if kind in then and kind not in now:
                count.new += 1
                count.sample("new", call)
            elif kind in now and kind not in then:
                count.gone += 1
                count.sample("gone", call)
            elif kind in now:
                count.still += 1
            if kind in known:
                count.known += 1
            if kind in cured:
                count.cured += 1
                count.sample("cured", call)

    def _kind(self, side: Side, kind: Kind) -> KindTally | None:
        kind_tally = self._kinds.get((side, kind))
        if kind_tally is None:
            tally = self.sides[side]
            if len(tally.kinds) >= KINDS_MAX:
                tally.further += 1
                return None
            kind_tally = self._kinds[side, kind] = KindTally(*kind)
            tally.kinds.append(kind_tally)
        return kind_tally

    def dump(self) -> str:
        """The tally as ASCII JSON: a path may hold characters that PostgreSQL cannot store."""
        sides = {side: asdict(tally) for side, tally in self.sides.items()}
        return json.dumps(sides | ({"regression": self.regression} if self.regression else {}))

    @classmethod
    def load(cls, text: str) -> "Tally":
        """Read what `dump` wrote; an empty text is an empty tally."""
        document: dict[Any, dict[str, Any]] = json.loads(text) if text else {}
        regression = document.pop("regression", None)
        return cls(
            {
                side: SideTally(
                    **{**members, "kinds": [KindTally(**kind) for kind in members["kinds"]]}
                )
                for side, members in document.items()
            },
            regression,
        )
