"""Completion of a query of calls: names, then values of the last term. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit.queries.call_query import COMBINED, parse, quoted
from audit.queries.filter_names import FILTER_NAMES, Kind

LIMIT = 20
"""Maximum number of suggestions."""

_EXAMPLES = {
    Kind.DURATION: (">1s", ">10s", "<100ms", "1s..5s"),
    Kind.COUNT: (">1k", ">10k", "1k..10k"),
    Kind.AMOUNT: (">0.01", ">1", "0.1..1", "none"),
    Kind.MOMENT: ("1h", "24h", "7d", "today", "yesterday"),
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A query that continues the one that is being typed."""

    query: str
    """The whole query."""
    note: str
    """Meaning of its last term."""


def complete(text: str, known: Mapping[str, Sequence[str]]) -> list[Suggestion]:
    """Suggest how to complete a query's last term.

    `known` maps names to their values, the likeliest first. Each suggestion begins with `text`, so
    that it can replace the text while it is being typed.
    """
    head, term = _last_term(text)
    name, colon, typed = term.partition(":")
    if not colon:
        used = {each.name for each in parse(head).terms} - COMBINED
        return [
            Suggestion(f"{head}{one.name}:", one.meaning)
            for one in FILTER_NAMES.values()
            if one.name.startswith(name) and one.name not in used
        ][:LIMIT]
    if name not in FILTER_NAMES:
        return []
    filter_name = FILTER_NAMES[name]
    values = [*filter_name.choices, *_EXAMPLES.get(filter_name.kind, ())]
    values += [quoted(value) for value in known.get(name, ())]
    if filter_name.takes_any:
        values.append("*")
    return [
        Suggestion(f"{head}{name}:{value}", filter_name.meaning)
        for value in values
        if value.startswith(typed) and value != typed
    ][:LIMIT]


def last_name(text: str) -> str:
    """Return the name whose value is being typed; '' if a name is being typed."""
    name, colon, _ = _last_term(text)[1].partition(":")
    return name if colon else ""


def _last_term(text: str) -> tuple[str, str]:
    """Return the text before the last term, and the term. Quotes may enclose white space."""
    start, is_quoted, is_escaped = 0, False, False
    for at, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif is_quoted and character == "\\":
            is_escaped = True
        elif character == '"' and (is_quoted or text[at - 1 : at] == ":"):
            is_quoted = not is_quoted
        elif (character.isspace() or (character == "(" and start == at)) and not is_quoted:
            start = at + 1
    return text[:start], text[start:]
