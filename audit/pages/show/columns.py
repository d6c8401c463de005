"""The columns that a viewer chose for the lists of calls and of traces."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from audit.models import PageChoice

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "calls": {
        "duration": "Duration",
        "tokens": "Tokens",
        "trace": "Trace",
        "run": "Run",
        "agent": "Agent",
        "model": "Model",
        "principal": "Principal",
        "environment": "Environment",
        "service": "Service",
    },
    "traces": {
        "calls": "Calls",
        "duration": "Duration",
        "tokens": "Tokens",
        "run": "Run",
        "tool": "First tool",
        "ended": "Last event",
    },
}
"""By page: the columns that can be left out or added, and their heads."""
_USUAL: Final[Mapping[str, Sequence[str]]] = {
    "calls": ("duration", "tokens", "trace", "run"),
    "traces": ("calls", "duration", "tokens", "run"),
}
"""What a viewer sees who has chosen nothing."""


def shown_columns(page: str, choice: PageChoice | None) -> list[str]:
    """The columns of a page in their order, those chosen or the usual ones."""
    chosen: Collection[str] | None = choice.columns if choice else None
    wanted = _USUAL[page] if chosen is None else chosen
    return [name for name in COLUMNS[page] if name in wanted]


class ColumnChoice(NamedTuple):
    """A column that can be chosen."""

    name: str
    head: str
    is_shown: bool


def column_choices(page: str, shown: Collection[str]) -> list[ColumnChoice]:
    """All columns that can be chosen."""
    return [ColumnChoice(name, head, name in shown) for name, head in COLUMNS[page].items()]
