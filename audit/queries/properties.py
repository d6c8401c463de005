"""The properties of a call: what calls are compared by. Pure.

A further property is a line here and a column of the part `property_columns` of `sql/apart.sql`,
in the same place. Its name is a name of the query language, or it has a `term` of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from audit.queries.call_filter import CallFilter, Contains, Has, leaves
from audit.queries.call_query import quoted
from audit.queries.filter_names import FILTER_NAMES

NONE: Final = ""
"""The value of calls that have none, where a query can name them: `NOT agent:*`."""
WORDS: Final = "words"
"""Stands for free text in `follows_from`."""
DURATIONS_US: Final = (10_000, 100_000, 1_000_000, 10_000_000)
"""The limits between the values of the property `duration`, which are numbered from 0."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of calls. Its values are texts, as the index has them."""

    name: str
    follows_from: frozenset[str]
    """Members of a `CallFilter`. A query that has one of them says itself what the value is."""
    is_paired: bool = False
    """Whether its values are also tested together with those of other properties."""
    label: str = ""
    term: Callable[[str], str] | None = None
    is_id: bool = False
    """Whether it groups few calls, which have much in common: one trace has one agent."""

    @property
    def title(self) -> str:
        """Its name on pages."""
        return self.label or FILTER_NAMES[self.name].label

    def term_of(self, value: str) -> str:
        """The query term for calls that have the value."""
        if self.term is not None:
            return self.term(value)
        return f"{self.name}:{quoted(value)}" if value else f"NOT {self.name}:*"

    def of(self, values: list[str | None]) -> list[str | None]:
        """The values as they are compared: a call without one is of interest if some have one."""
        takes_any = self.name in FILTER_NAMES and FILTER_NAMES[self.name].takes_any
        if not takes_any:
            return [value or None for value in values]
        return [value or NONE for value in values]


def _given(name: str, *also: str, is_paired: bool = False) -> Property:
    return Property(name, frozenset({FILTER_NAMES[name].field, *also}), is_paired)


def duration_term(value: str) -> str:
    """The query term of a value of the property `duration`."""
    low, high = (None, *DURATIONS_US, None)[int(value) : int(value) + 2]
    if low is None:
        return f"duration:<{high}us"
    return f"duration:>={low}us" if high is None else f"duration:{low}us..{high - 1}us"


_FAILED: Final = ("state", "error", "code", "upstream")
PROPERTIES: Final = (
    _given("tool", "call", WORDS, is_paired=True),
    _given("version", is_paired=True),
    _given("agent", is_paired=True),
    _given("agent-version", is_paired=True),
    _given("model", is_paired=True),
    _given("provider", is_paired=True),
    _given("service", is_paired=True),
    _given("environment", is_paired=True),
    _given("principal", is_paired=True),
    _given("server", is_paired=True),
    _given("client", is_paired=True),
    _given("protocol"),
    _given("producer", is_paired=True),
    _given("collection", is_paired=True),
    _given("workflow", is_paired=True),
    Property("state", frozenset({*_FAILED, "condition", WORDS})),
    Property("error", frozenset({*_FAILED, WORDS})),
    Property("code", frozenset({*_FAILED, WORDS})),
    Property("upstream", frozenset(_FAILED), term=lambda value: f"upstream:{value}"),
    Property(
        "violation", frozenset({"violation", "path"}), term=lambda value: f"violation:{value}"
    ),
    _given("cache", is_paired=True),
    Property(
        "attempt",
        frozenset({"condition"}),
        is_paired=True,
        label="Attempt",
        term=lambda value: "is:retry" if value == "retry" else "NOT is:retry",
    ),
    Property("duration", frozenset({"duration", "condition"}), term=duration_term),
    Property("run", frozenset({"run", "trace", "since", "until"}), is_id=True),
    Property("trace", frozenset({"trace", "since", "until"}), is_id=True),
)
"""In the order of `property_columns`."""
TIME: Final = Property(
    "time", frozenset({"since", "until", "trace", "run", "call"}), label="Time", term=lambda _: ""
)
"""The part of the range in which a call started: its number. Its term is a range of time."""


def mentioned(wanted: CallFilter) -> set[str]:
    """The members that a query uses, `WORDS` for free text."""
    members = {each.member for each in wanted.terms}
    for condition in wanted.others:
        for leaf in leaves(condition):
            if isinstance(leaf, Has):
                members.add(leaf.member)
            elif isinstance(leaf, Contains):
                members.add(WORDS)
    return members


def free_properties(*filters: CallFilter, has_own_time: bool) -> tuple[Property, ...]:
    """The properties that no query says anything about; the time too, unless one has its own."""
    members = {each for wanted in filters for each in mentioned(wanted)} - {"since", "until"}
    members |= {"since"} if has_own_time else set()
    return tuple(each for each in (*PROPERTIES, TIME) if not each.follows_from & members)
