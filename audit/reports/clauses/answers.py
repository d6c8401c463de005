"""Puts the figures of a stored report beside the clauses. Pure but for addresses."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from audit.reports.clauses.figures import Figure, figure
from audit.reports.clauses.texts import CLAUSES, LIMITS, Clause
from audit.reports.compose import warnings
from audit.reports.export import head
from audit.reports.queries import Report

FORMAT: Final = "tooltrail-clauses/1"
MEMBER: Final = "record"
"""The member of a report's figures that a clause report needs."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A clause with its figures."""

    clause: Clause
    figures: list[Figure]


@dataclass(frozen=True, slots=True)
class Source:
    """A law, a standard or a set of criteria, with its clauses."""

    name: str
    clauses: list[Answered]


def has_clauses(report: Report) -> bool:
    """Whether a report was made with the figures of clauses."""
    return MEMBER in report.figures


def sources(report: Report) -> list[Source]:
    """All clauses with the report's figures, by source, in their order."""
    by_name: dict[str, list[Answered]] = {}
    for clause in CLAUSES:
        answered = Answered(clause, [figure(report, pk) for pk in clause.shows])
        by_name.setdefault(clause.source, []).append(answered)
    return [Source(name, answered) for name, answered in by_name.items()]


def clause_document(report: Report) -> dict[str, Any]:
    """The clause report as JSON values."""
    return {
        "format": FORMAT,
        "report": head(report),
        "clauses": [
            {
                "id": one.clause.id,
                "source": one.clause.source,
                "reference": one.clause.reference,
                "topic": one.clause.topic,
                "asks": one.clause.asks,
                "shows": [asdict(each) for each in one.figures],
                "does_not_show": list(one.clause.does_not_show),
            }
            for source in sources(report)
            for one in source.clauses
        ],
        "limits": [*warnings(report), *LIMITS],
    }
