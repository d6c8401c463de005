"""The grammar of the query language: it turns a text into conditions that must hold. Pure.

    query := and-group ("OR" and-group)*
    and-group := negatable ("AND"? negatable)*
    negatable := "NOT"* (term | "(" query ")")
    term := name ":" value | text

Operators may be in upper or lower case. A value or text with white space or parentheses needs
double quotes, in which `\\` escapes the next character. A `*` after a value makes it a prefix.
"""

import re
from dataclasses import dataclass
from datetime import tzinfo
from difflib import get_close_matches

from audit.queries.call_filter import AllOf, AnyOf, Condition, Contains, Has, Not
from audit.queries.call_query_values import (
    PAYLOADS,
    UnreadableError,
    read_payload_term,
    read_value,
    read_words,
)
from audit.queries.filter_names import FILTER_NAMES

MAX_TERMS = 50
MAX_DEPTH = 10
"""Levels of parentheses."""

_QUOTE_COLON = "Put a text with a colon in quotes."
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r'([^\s:"()]*):')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_COMPARED = re.compile(r"(\w+(?:-\w+)*)\s*(?:[!=]=?|[<>])")
_OPERATOR = re.compile(r"(NOT|OR|AND)(?=[\s()]|\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is invalid: a sentence, and the part of the query that it is about."""

    message: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """A condition and its position. `name` is set if it is a single term."""

    condition: Condition
    start: int
    end: int
    name: str = ""
    is_choice: bool = False
    """Whether it is an OR without parentheses."""


class Parser:
    """Reads one query by recursive descent and collects its problems."""

    def __init__(self, text: str, zone: tzinfo) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._zone = zone
        self._at = 0
        self._depth = 0
        self._term_count = 0
        self._has_given_up = False

    def parts(self) -> list[Part]:
        """The parts of the query, all of which must hold."""
        parts = self._any()
        while not self._is_over():  # at a `)` without a `(`
            message = "This ) has no opening (. Put a value with parentheses in quotes."
            self._note(message, self._at, self._at + 1)
            self._at += 1
            parts += self._any()
        return parts

    def _any(self) -> list[Part]:
        """The parts up to the end or a `)`. Parts joined by OR become one part."""
        self._skip_space()
        start = self._at
        choices = [self._all()]
        while operator := self._operator("OR"):
            is_first_missing = operator.start() == start
            self._at = operator.end()
            self._skip_space()
            before = self._at
            choices.append(self._all())
            if is_first_missing or self._at == before:
                self._note("OR needs a term on both sides.", *operator.span())
        known = tuple(_one(parts) for parts in choices if parts)
        if len(choices) == 1 or not known:
            return choices[0]
        return [Part(AnyOf(known), start, self._last_end(), is_choice=True)]

    def _all(self) -> list[Part]:
        """The parts up to an OR, the end or a `)`."""
        parts: list[Part] = []
        start = self._at
        while not (self._is_at_end_of_group() or self._operator("OR")):
            if operator := self._operator("AND"):
                is_first = operator.start() == start
                self._at = operator.end()
                if is_first or self._is_at_end_of_group() or self._operator("AND|OR"):
                    self._note("AND needs a term on both sides.", *operator.span())
            else:
                parts += self._negatable()
        return parts

    def _negatable(self) -> list[Part]:
        start, is_negated, is_plain = self._at, False, True
        while operator := self._operator("NOT"):
            self._at = operator.end()
            is_negated, is_plain = not is_negated, False
        if not is_plain and (self._is_at_end_of_group() or self._operator("AND|OR")):
            self._note("NOT needs a term after it.", start, start + len("NOT"))
            return []
        parts = self._group() if self._text.startswith("(", self._at) else self._term()
        if is_plain or not parts:
            return parts
        condition = Not(_one(parts)) if is_negated else AllOf((_one(parts),))
        return [Part(condition, start, self._last_end())]

    def _group(self) -> list[Part]:
        """The parts in parentheses."""
        start = self._at
        if self._depth == MAX_DEPTH:
            return self._give_up(
                f"Parentheses can be nested at most {MAX_DEPTH} levels deep.", start
            )
        self._depth += 1
        self._at += 1
        problem_count = len(self.problems)
        parts = self._any()
        self._depth -= 1
        if self._is_over():
            if not self._has_given_up:
                self._note("This ( is not closed.", start, start + 1)
            return []
        self._at += 1
        if not parts and len(self.problems) == problem_count:
            self._note("These parentheses are empty.", start, self._at)
        if len(parts) == 1 and isinstance(parts[0].condition, AnyOf):
            return [Part(parts[0].condition, start, self._at)]
        return parts

    def _term(self) -> list[Part]:
        """`name:value` or a text."""
        start = self._at
        self._term_count += 1
        if self._term_count > MAX_TERMS:
            return self._give_up(f"A query can have at most {MAX_TERMS} terms.", start)
        name_match = _NAME.match(self._text, start)
        name = name_match[1] if name_match else None
        at = name_match.end() if name_match else start
        quote = _QUOTED.match(self._text, at)
        if quote is None and self._text.startswith('"', at):
            return self._give_up("This quotation mark is not closed.", at)
        end = self._end_of_word(quote.end() if quote else at)
        self._at = end
        if quote is None:
            value = self._text[at:end].removesuffix("*")
            is_prefix = self._text[at:end].endswith("*")
        else:
            value = re.sub(r"\\(.)", r"\1", quote[1], flags=re.DOTALL)
            rest = self._text[quote.end() : end]
            is_prefix = rest == "*"
            if rest not in {"", "*"}:
                self._note("Add a space after the closing quote.", quote.end(), end)
                return []
        try:
            is_quoted = quote is not None
            condition = self._read(name, value, is_prefix=is_prefix, is_quoted=is_quoted)
        except UnreadableError as error:
            at = start if name is None else min(at, end - 1)
            self._note(str(error), at, end)
            return []
        if condition is None:
            self._note(_unknown(name or ""), start, start + len(name or ""))
            return []
        return [Part(condition, start, end, name or "")]

    def _read(
        self, name: str | None, value: str, *, is_prefix: bool, is_quoted: bool
    ) -> Condition | None:
        """The condition of a term; None for an unknown name. Raises UnreadableError."""
        if name is None:
            if not is_quoted and (meant := _COMPARED.match(value)) and meant[1] in FILTER_NAMES:
                raise UnreadableError(
                    f"Use a colon: {FILTER_NAMES[meant[1]].example}. To search for this text,"
                    " put it in quotes."
                )
            return Contains(read_words(value))
        if re.split(r"[.\[]", name)[0] in PAYLOADS:
            return read_payload_term(name, value, is_prefix=is_prefix, is_quoted=is_quoted)
        if name not in FILTER_NAMES:
            return None
        known = FILTER_NAMES[name]
        return Has(known.field, read_value(known, value, self._zone, is_prefix=is_prefix))

    def _end_of_word(self, at: int) -> int:
        """The end of a word: at white space, or at a `)` that the word itself does not open."""
        depth = 0
        for end in range(at, len(self._text)):
            character = self._text[end]
            depth += (character == "(") - (character == ")")
            if character.isspace() or depth < 0:
                return end
        return len(self._text)

    def _operator(self, which: str) -> re.Match[str] | None:
        """The next operator, if it is one of `which`."""
        self._skip_space()
        operator = _OPERATOR.match(self._text, self._at)
        return operator if operator and operator[1].upper() in which.split("|") else None

    def _is_at_end_of_group(self) -> bool:
        return self._is_over() or self._text[self._at] == ")"

    def _is_over(self) -> bool:
        self._skip_space()
        return self._at == len(self._text)

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at

    def _last_end(self) -> int:
        """The end of the text read so far, without trailing white space."""
        return len(self._text[: self._at].rstrip())

    def _note(self, message: str, start: int, end: int) -> None:
        self.problems.append(Problem(message, start, end))

    def _give_up(self, message: str, start: int) -> list[Part]:
        """Note a problem and leave the rest of the query unread."""
        self._note(message, start, len(self._text))
        self._at = len(self._text)
        self._has_given_up = True
        return []


def _one(parts: list[Part]) -> Condition:
    conditions = tuple(part.condition for part in parts)
    return conditions[0] if len(conditions) == 1 else AllOf(conditions)


def _unknown(name: str) -> str:
    close = get_close_matches(name.lower(), FILTER_NAMES, n=1)
    if not name:
        return f"The filter before the colon is missing. {_QUOTE_COLON}"
    if close:
        return f"Unknown filter “{name}”. Did you mean {close[0]}?"
    return (
        f"Unknown filter “{name}”. Available filters: {', '.join(FILTER_NAMES)}, args.… and"
        f" output.… {_QUOTE_COLON}"
    )
