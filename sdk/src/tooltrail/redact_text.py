"""Finds secrets by name inside texts: in JSON, in pairs such as `name=value`, and in lines such as
`Authorization: Basic …`; and the password of a URL, `scheme://user:password@host`.

Payloads often hold texts that are JSON themselves: arguments as a model wrote them, attributes
of spans, bodies in error messages. All characters that are not removed stay unchanged.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

MARK = "[redacted]"
TEXTS_DEEP_MAX = 8
"""The nesting limit for JSON in a text in JSON in a text …; deeper texts are removed whole."""

MARK_JSON = json.dumps(MARK)
_PARTS_MAX = 1000  # joined then: many small texts take seven times the memory of one
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_JSON = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
# One of: a quoted name and a colon or arrow, as in truncated JSON and in the reprs of Python and
# Ruby; a bare name in an object, as JavaScript prints it; a bare name and an equals sign; a line
# of YAML or a header, whose value is one word or two, words that end in semicolons, or quoted; the
# user of a URL before its password. `password: at least 8 characters` is prose. All repetitions are
# bounded, so the time is linear.
_NAME = re.compile(
    r"""(?P<quote>\\{0,15}["'])(?P<quoted>[^"'\\]{1,80})(?P=quote)\s{0,20}(?::|=>)\s{0,20}"""
    r"""|[{,]\s{0,20}(?P<member>[\w-]{1,80})\s{0,20}:\s{0,20}(?=\\{0,15}["'])"""
    r"""|(?<![\w-])(?P<bare>[\w-]{1,80})"""
    r"""(?::?=>?|[ \t]{1,20}(?:=>|:?=(?!=)))[ \t]{0,20}"""
    r"""|(?m:^)[ \t]{0,40}(?:[->][ \t]{1,4})?(?P<line>[\w-]{1,80}):[ \t]{1,20}"""
    r"""(?=(?:[^\s"'{\[;]{1,999};[ \t]){0,20}"""
    r"""[^\s"'{\[][^\s]{0,999}(?:[ \t][^\s]{1,999})?[ \t]{0,9}\r?(?m:$)|["'])"""
    r"""|://[^\s/?#:@"']{0,80}(?P<user>:)(?=[^\s/?#@"']{1,200}@)"""
)
_LINE_VALUE = re.compile(r"[^\r\n]*")
_PASSWORD = re.compile(r"[^@]*")
_PROSE = ("token", "auth", "jwt", "bearer")  # `token: unexpected`
URL_WITH_PASSWORD = r"://[^\s/?#:@]{0,80}:[^\s/?#@]{1,200}@"  # noqa: S105  # a pattern
_QUOTE = re.compile(r"""(?<!\\)(\\*)(["'])""")
_OPENING = re.compile(r"""[A-Za-z]{0,2}(\\*)(["'])""")  # also Python's b'…'
_BARE_VALUE = re.compile(r"""[^\s,;&"'}\])]*""")
_OPENED = re.compile(r"[\[({]")
_BRACKET = re.compile(r"""\\.|["'()\[\]{}]""", re.DOTALL)


class Rules(Protocol):
    """What counts as a secret. Implemented by `tooltrail.redact.Redactor`."""

    def is_secret_name(self, name: Any) -> bool:
        """Whether a member with this name is a secret."""

    def clean_text(self, text: str, deep: int = 0) -> tuple[str, str | None]:
        """Return the text without secrets, and the reason if it was changed."""


def decode(text: str) -> Any:
    """Decode JSON; numbers stay text. Raises ValueError or RecursionError."""
    return _JSON.decode(text)


def is_json_like(text: str) -> bool:
    """Whether a text starts like JSON that can contain texts."""
    return text.lstrip()[:1] in ("{", "[", '"')


def without_named(rules: Rules, text: str, deep: int) -> str:
    """Return the text without the values of secret names: the same object if it has none."""
    if is_json_like(text):
        try:
            decode(text)
        except ValueError:
            return _without_pairs(rules, text)
        except RecursionError:
            return MARK
        return clean_json(rules, text, deep=deep + 1)
    return _without_pairs(rules, text)


def clean_json(
    rules: Rules,
    text: str,
    judge: Callable[[Sequence[str], bool], bool | None] | None = None,
    deep: int = 0,
) -> str:
    """Return well-formed JSON without its secrets: the same object if it has none.

    `judge` gets the names that lead to a value ("" for the items of a list) and whether it is
    a container. True keeps the value, False removes it, None leaves it to the rules.
    """
    return _replaced(text, _replacements(rules, text, judge, deep))


def _replacements(
    rules: Rules,
    text: str,
    judge: Callable[[Sequence[str], bool], bool | None] | None,
    deep: int,
) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and replacement of each value in the JSON that must change."""
    is_object: list[bool] = []  # for each open container
    names: list[str] = []  # for each open container, the member being read
    awaits_name = False
    hidden_at = hidden_depth = -1
    for match in _TOKEN.finditer(text):
        token = match[0]
        first = token[0]
        if first == ":":
            continue
        if first == ",":
            awaits_name = is_object[-1]
            continue
        if first in "]}":
            is_object.pop()
            names.pop()
            awaits_name = False
            if len(is_object) == hidden_depth:
                yield hidden_at, match.end(), MARK_JSON
                hidden_at = hidden_depth = -1
            continue
        if awaits_name:
            names[-1] = text_of(token)
            awaits_name = False
            continue
        is_container = first in "[{"
        verdict = judge(names, is_container) if judge is not None and hidden_depth < 0 else None
        if hidden_depth < 0 and not verdict:
            is_named = verdict is False or (
                bool(is_object) and is_object[-1] and rules.is_secret_name(names[-1])
            )
            if is_container:
                if is_named:
                    hidden_at, hidden_depth = match.start(), len(is_object)
            elif is_named and first != "n":
                yield *match.span(), MARK_JSON
            elif first == '"':
                value = text_of(token)
                cleaned, _ = rules.clean_text(value, deep)
                if cleaned is not value:
                    yield *match.span(), json.dumps(cleaned)
        if is_container:
            is_object.append(first == "{")
            names.append("")
            awaits_name = first == "{"


def text_of(token: str) -> str:
    """Decode one string token of JSON."""
    if "\\" not in token:
        return token[1:-1]
    text: str = _JSON.decode(token)
    return text


def _without_pairs(rules: Rules, text: str) -> str:
    """Return a text that is not JSON without the values of secret names."""
    return _replaced(text, _pairs(rules, text))


def _pairs(rules: Rules, text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and replacement of each value of a secret name in a text."""
    at = 0
    while match := _NAME.search(text, at):
        start, at = _secret(rules, text, match)
        if start < at:
            yield start, at, MARK


def _replaced(text: str, replacements: Iterator[tuple[int, int, str]]) -> str:
    """Return the text with its replacements: the same object if there are none."""
    blocks: list[str] = []
    parts: list[str] = []
    copied_to = 0
    for start, end, instead in replacements:
        parts += (text[copied_to:start], instead)
        copied_to = end
        if len(parts) > _PARTS_MAX:
            blocks.append("".join(parts))
            parts.clear()
    return "".join((*blocks, *parts, text[copied_to:])) if copied_to else text


def _secret(rules: Rules, text: str, match: re.Match[str]) -> tuple[int, int]:
    """Where the secret after a match of `_NAME` begins and ends; empty if there is none."""
    start, line = match.end(), match["line"]
    name = line or match["quoted"] or match["member"] or match["bare"] or "password"
    if not rules.is_secret_name(name) or (line and line.lower() in _PROSE):
        return start, start
    if match["user"]:
        value = _PASSWORD.match(text, start)
    elif line and text[start] not in "\"'":
        value = _LINE_VALUE.match(text, start)
    else:
        return _value(text, start, is_escaped="\\" in (match["quote"] or ""))
    return start, start if value is None or MARK in value[0] else value.end()


def _value(text: str, start: int, *, is_escaped: bool) -> tuple[int, int]:
    """Where the value after a name begins and ends; `is_escaped`: the name's quotes are escaped.

    An unclosed value, and a container among escapes, extends to the end of the text.
    """
    opening = _OPENING.match(text, start)
    if opening is None:
        if text.startswith(MARK, start):
            return start, start
        bare = _BARE_VALUE.match(text, start)
        end = bare.end() if bare else start
        # `Login(user='ada', …)` is a container, too.
        if opened := _OPENED.search(text, start, end):
            return start, len(text) if is_escaped else _closed(text, opened.start())
        return start, end
    for closing in _QUOTE.finditer(text, opening.end()):
        if closing[2] == opening[2] and len(closing[1]) <= len(opening[1]):
            return opening.end(), closing.start()
    return opening.end(), len(text)


def _closed(text: str, start: int) -> int:
    """Where the container at `start` ends; the end of the text if it is not closed."""
    depth = 0
    quote = ""
    for match in _BRACKET.finditer(text, start):
        sign = match[0]
        if sign in ('"', "'"):
            quote = "" if sign == quote else quote or sign
        elif quote or sign[0] == "\\":
            continue
        else:
            depth += 1 if sign in "([{" else -1
            if depth == 0:
                return match.end()
    return len(text)
