"""The query language of the list of calls: `tool:search (state:error OR duration:>2s)`.

Pure. Text becomes a `Query`, whose `CallFilter` says what `audit.queries.call_list` searches for.
The grammar is in `audit.queries.call_query_grammar`. An invalid query raises nothing: each problem
says what is wrong, and where.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from audit.queries.call_filter import CallFilter, Has, PayloadHas, leaves
from audit.queries.call_query_grammar import Parser, Part, Problem
from config.instants import iso_exact

MAX_LENGTH = 2_000
"""Characters of a query."""
_MAX_PINNED = MAX_LENGTH + 100
"""Characters of a pinned query, which may be longer: `since:1h` becomes an instant."""
_BOUND = "{0}: applies to the whole query. Write it outside of NOT, OR and parentheses."
_NO_TIME = (
    "until must be later than since. It is exclusive: since:2026-11-20 until:2026-11-21 is one day."
)
_MIXED = (
    "args. and output. terms cannot be in one OR or NOT with other terms. Write them outside of it."
)
_LISTS_ONLY = "args. and output. terms work in the list of calls only."
_WITHHELD = (
    "Only members who can see payloads can use args. and output. Auditors can search in payloads"
    " and give a reason."
)


@dataclass(frozen=True, slots=True)
class Reader:
    """The person who searches."""

    zone: tzinfo = UTC
    """The time zone of days and of times without an offset."""
    sees_payloads: bool = False
    """Whether arguments, outputs and error messages may be searched."""


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a query that must hold: its text as written, and its position.

    `name` is '' for free text, a negation and a group.
    """

    name: str
    text: str
    start: int
    end: int
    is_choice: bool = False
    """Whether it is an OR without parentheses. It is then the whole query."""
    is_payload: bool = False
    """Whether it is about values in arguments or outputs."""

    @property
    def closed(self) -> str:
        """The text of the term beside other terms: an OR gets parentheses."""
        return f"({self.text})" if self.is_choice else self.text


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. Terms with a problem are in neither `terms` nor `readable`."""

    text: str
    terms: tuple[Term, ...]
    readable: CallFilter
    """The filter of the terms without a problem: to fill in a form, never to search."""
    problems: tuple[Problem, ...]

    @property
    def wanted(self) -> CallFilter:
        """The filter to search by.

        Raises InvalidQueryError if a part of the query is invalid: the rest alone may mean the
        opposite.
        """
        if self.problems:
            raise InvalidQueryError(self.problems[0].message)
        return self.readable

    def of_index(self) -> "Query":
        """The query for figures, which read the index: its terms on payloads are problems."""
        withheld = (
            Problem(_LISTS_ONLY, one.start, one.end) for one in self.terms if one.is_payload
        )
        return replace(self, problems=(*self.problems, *withheld))

    def without(self, *names: str) -> str:
        """The text of the query without its terms of these names."""
        return " ".join(one.closed for one in self.terms if one.name not in names)

    def value(self, name: str) -> str:
        """The value of a term as written; '' without such a term."""
        prefix = len(name) + 1
        return next((term.text[prefix:] for term in self.terms if term.name == name), "")

    def having(self, name: str, value: str) -> str:
        """The query with this term added or replaced, or without it if `value` is ''.

        Terms with a problem are dropped. `value` is written as in a query: `>2s`, `sear*`,
        `"two words"`.
        """
        term = f"{name}:{value}" if value else ""
        kept = [term if one.name == name else one.closed for one in self.terms]
        if term not in kept:
            kept.append(term)
        return " ".join(filter(None, kept))

    def pinned(self, now: datetime) -> str:
        """The query with its range as instants, so that it always means what it means at `now`.

        `parse_pinned` reads it. Raises InvalidQueryError like `wanted`.
        """
        query = self
        for name, instant in (
            ("since", self.wanted.from_instant(now)),
            ("until", self.wanted.to_instant(now)),
        ):
            if instant is not None:
                query = parse_pinned(query.having(name, iso_exact(instant)), ANYBODY)
        return str(query)

    def on_record(self, now: datetime) -> str:
        """The pinned query without values of payload terms, as the ledger never forgets."""
        pinned = parse_pinned(self.pinned(now), ANYBODY)
        hidden = (f"{term.name}:…" if term.name else "(…)" for term in pinned.terms)
        return " ".join(
            short if term.is_payload else term.text
            for term, short in zip(pinned.terms, hidden, strict=True)
        )

    def __str__(self) -> str:
        """The terms without a problem, separated by one space."""
        if len(self.terms) == 1:
            return self.terms[0].text
        return " ".join(term.closed for term in self.terms)


class InvalidQueryError(ValueError):
    """A part of a query is invalid, so nothing may be searched, exported or erased by it."""


COMBINED = frozenset({"is"})
"""Filters that may be used several times, as a call can meet several of their values."""

ANYBODY = Reader(UTC, sees_payloads=True)
"""For taking a query apart and putting it together again, never for searching."""


def parse_pinned(text: str, reader: Reader) -> Query:
    """Read a pinned query, which may be a little longer than `MAX_LENGTH`."""
    return _parse(text, reader, _MAX_PINNED)


def parse(text: str, reader: Reader = Reader()) -> Query:
    """Read a query. Raises nothing; see `Query.problems`."""
    query = _parse(text, reader, MAX_LENGTH)
    late = next((term for term in query.terms if term.name == "until"), None)
    if late is None or not query.readable.is_without_time:
        return query
    return replace(
        query,
        terms=tuple(term for term in query.terms if term is not late),
        readable=replace(query.readable, until=None),
        problems=(*query.problems, Problem(_NO_TIME, late.start, late.end)),
    )


def _parse(text: str, reader: Reader, max_length: int) -> Query:
    if len(text) > max_length:
        too_long = f"A query can have at most {max_length:,} characters."
        return Query(text, (), CallFilter(), (Problem(too_long, max_length, len(text)),))
    parser = Parser(text, reader.zone)
    parts = parser.parts()
    terms: list[Term] = []
    wanted = CallFilter(sees_messages=reader.sees_payloads)
    for part in parts:
        if any(part.start <= each.start < max(part.end, 1) for each in parser.problems):
            continue
        is_repeated = part.name != "" and any(part.name == each.name for each in terms)
        is_further = is_repeated and part.name in COMBINED
        message = _why_not_here(part, is_repeated and not is_further, reader)
        if message:
            parser.problems.append(Problem(message, part.start, part.end))
            continue
        is_payload = any(isinstance(leaf, PayloadHas) for leaf in leaves(part.condition))
        terms.append(
            Term(
                "" if is_further else part.name,  # forms show and change the first one
                text[part.start : part.end],
                part.start,
                part.end,
                is_choice=part.is_choice,
                is_payload=is_payload,
            )
        )
        match part.condition:
            case Has(member, value) if not is_further:
                wanted = wanted.also(member, value)  # two names may have one member
            case _ if is_payload:
                wanted = replace(wanted, payload=(*wanted.payload, part.condition))
            case _:
                wanted = replace(wanted, others=(*wanted.others, part.condition))
    problems = sorted(parser.problems, key=lambda each: each.start)
    return Query(text, tuple(terms), wanted, tuple(problems))


def quoted(value: str, *, is_prefix: bool = False) -> str:
    """A text as written in a query, with quotes if it needs them."""
    if not value or value[0] == '"' or value[-1] == "*" or re.search(r"[\s()]", value):
        value = '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    return f"{value}*" if is_prefix else value


def _why_not_here(part: Part, is_repeated: bool, reader: Reader) -> str:
    """Why a part is not allowed in its place; '' if it is allowed."""
    if is_repeated and isinstance(part.condition, Has):
        return f"{part.name} is used twice. All terms must match; use OR between alternatives."
    conditions = list(leaves(part.condition))
    if not part.name:
        for leaf in conditions:
            if isinstance(leaf, Has) and leaf.member in {"since", "until"}:
                return _BOUND.format(leaf.member)
    of_payloads = [leaf for leaf in conditions if isinstance(leaf, PayloadHas)]
    if of_payloads and not reader.sees_payloads:
        return _WITHHELD
    return _MIXED if 0 < len(of_payloads) < len(conditions) else ""
