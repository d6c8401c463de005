"""What a tenant's admin wants kept out of the log: taken out of events before they are stored.

The rules are the SDK's (`tooltrail.redact`): members by name, texts by pattern; the engine's time
grows linearly with the text, whatever the pattern. They are applied to the bytes of a line, so
that what they do not touch stays as it came, and leaf, index and inbox are made of what is left.
Names, ids and times of the wire contract stay: without them an event would be none.

Rules are known for `BELIEVED_FOR` seconds; without any, that look is all a request pays.
"""

import json
import logging
import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import OperationalError
from pydantic.alias_generators import to_camel
from tooltrail.redact import MARK, Redactor

from audit import wire
from audit.body import Line
from tenants.models import TenantSetting
from tenants.scope import tenant_scope

BELIEVED_FOR = 5.0
"""Seconds until every process applies rules that were changed."""
MAX_RULES = 50
MAX_LENGTH = 300

_log = logging.getLogger(__name__)
_KNOWN_MAX = 10_000
_MARK_JSON = json.dumps(MARK)
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_STRING = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")\s*(:?)', re.DOTALL)
_JSON = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_PAYLOADS = {"args", "output"}
_CONTRACT = {"type"} | {
    alias
    for struct in (wire.StartEvent, wire.EndEvent, wire.GapEvent)
    for name in struct.__struct_fields__
    for alias in (name, to_camel(name))
    if name not in _PAYLOADS
}
"""Members of an event that are kept as they are, where their value is a plain one."""
_OF_GUARD = {"strategy", "outcome", "violations", "path", "code", "severity"}
_OF_SPANS = {"trace_id", "span_id", "parent_span_id"}


class Redaction:
    """A tenant's rules. Raises ValueError saying what is wrong with which."""

    def __init__(self, names: Sequence[str], patterns: Sequence[str]) -> None:
        for rules, what in ((names, "names"), (patterns, "patterns")):
            if len(rules) > MAX_RULES:
                raise ValueError(f"{MAX_RULES} {what} at most, not {len(rules)}")
            if too_long := [rule for rule in rules if len(rule) > MAX_LENGTH]:
                raise ValueError(f"longer than {MAX_LENGTH} characters: {too_long[0][:40]}…")
        for name in names:
            if not re.search("[A-Za-z0-9]", name):
                raise ValueError(f"a name has letters or digits: {name}")
        for pattern in patterns:
            if Redactor(patterns={"": pattern}, defaults=False).is_secret_text(""):
                raise ValueError(f"this would remove every text: {pattern}")
        self._redactor = Redactor(
            keys=names, patterns={each: each for each in patterns}, defaults=False
        )
        self._has_patterns = bool(patterns)

    def apply(self, lines: Sequence[Line]) -> list[Line]:
        """The lines without what the rules name."""
        return [Line(line.number, self.clean(line.raw)) for line in lines]

    def clean(self, raw: bytes) -> bytes:
        """A line without what the rules name; the same object if it holds none of it.

        Of bytes that are no JSON nothing is kept: what is a member cannot be told in them.
        """
        try:
            text = raw.decode()
            # Its search knows names as they are written, hence not as `\\u0070assword`.
            is_plain = not self._has_patterns and "\\u00" not in text
            if is_plain and self._redactor.is_harmless(text):
                return raw
            _JSON.decode(text)
        except (ValueError, RecursionError):
            return _MARK_JSON[1:-1].encode()
        if not self._may_hold(text):
            return raw
        parts: list[str] = []
        done = 0
        for start, end in self._found(text):
            parts += (text[done:start], _MARK_JSON)
            done = end
        return "".join((*parts, text[done:])).encode() if parts else raw

    def _may_hold(self, text: str) -> bool:
        """Whether any name or text of well-formed JSON is to go, wherever it lies.

        A fifth of the time that finding its place takes, and most lines hold none.
        """
        is_secret_name, is_secret_text = (
            self._redactor.is_secret_name,
            self._redactor.is_secret_text,
        )
        for token, colon in _STRING.findall(text):
            if (is_secret_name if colon else is_secret_text)(_text_of(token)):
                return True
        return False

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where in JSON known to be well-formed the values lie that must go."""
        redactor = self._redactor
        is_object: list[bool] = []  # of each container that is open
        names: list[str] = []  # in each of them, of the member that is being read
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
                    yield hidden_at, match.end()
                    hidden_at = hidden_depth = -1
                continue
            if awaits_name:
                names[-1] = _text_of(token)
                awaits_name = False
                continue
            if hidden_depth < 0 and is_object and not _is_kept(names, is_container=first in "[{"):
                is_named = is_object[-1] and redactor.is_secret_name(names[-1])
                if first in "[{":
                    if is_named:
                        hidden_at, hidden_depth = match.start(), len(is_object)
                elif (is_named and first != "n") or (
                    first == '"' and redactor.is_secret_text(_text_of(token))
                ):
                    yield match.span()
            if first in "[{":
                is_object.append(first == "{")
                names.append("")
                awaits_name = first == "{"


def redacted(tenant_id: UUID, lines: Sequence[Line]) -> Sequence[Line]:
    """The lines as the tenant's admin wants them stored: the very same without rules.

    A query every `BELIEVED_FOR` seconds, in the tenant's open scope or in one of its own. Raises
    django.db.OperationalError where rules cannot be applied, as when the database is away.
    """
    until, redaction = _KNOWN.get(tenant_id, (0.0, None))
    if time.monotonic() >= until:
        redaction = _look_up(tenant_id)
    return lines if redaction is None else redaction.apply(lines)


def forget_rules(tenant_id: UUID) -> None:
    """Let this process look the tenant's rules up again at once."""
    _KNOWN.pop(tenant_id, None)


def are_one_but_for_marks(raw: bytes, stored: bytes) -> bool:
    """Whether two events differ only where one of them had something removed.

    An event that is sent again after rules have changed is the same event.
    """
    mark = MARK.encode()
    if mark not in raw and mark not in stored:
        return False
    try:
        return _agree(_JSON.decode(raw.decode()), _JSON.decode(stored.decode()))
    except (ValueError, RecursionError):
        return False


_KNOWN: dict[UUID, tuple[float, Redaction | None]] = {}


def _look_up(tenant_id: UUID) -> Redaction | None:
    with tenant_scope(tenant_id):
        rules = (
            TenantSetting.objects.filter(tenant_id=tenant_id)
            .values_list("redact_names", "redact_patterns")
            .first()
        )
    try:
        redaction = _compiled(*map(tuple, rules)) if rules is not None and any(rules) else None
    except ValueError as error:
        # Rules were checked when they were saved; another release's engine may know less. What
        # they should keep out is not stored without them: senders keep it and come again.
        _log.error("the redaction rules of tenant %s cannot be applied: %s", tenant_id, error)
        raise OperationalError("redaction rules cannot be applied") from error
    if len(_KNOWN) >= _KNOWN_MAX:
        _KNOWN.clear()
    _KNOWN[tenant_id] = time.monotonic() + BELIEVED_FOR, redaction
    return redaction


@lru_cache(maxsize=100)
def _compiled(names: tuple[str, ...], patterns: tuple[str, ...]) -> Redaction:
    return Redaction(names, patterns)


def _is_kept(names: Sequence[str], *, is_container: bool) -> bool:
    """Whether a value must stay for the event to be one; `names` lead to it."""
    if len(names) == 1:
        return names[0] in _CONTRACT and (not is_container or names[0] == "guard")
    if names[0] == "guard":
        return names[-1] in _OF_GUARD
    return names[0] == "otlp" and names[-1] in _OF_SPANS


def _text_of(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    text: str = _JSON.decode(token)
    return text


def _agree(one: Any, other: Any) -> bool:
    if MARK in (one if isinstance(one, str) else "", other if isinstance(other, str) else ""):
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_agree(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    return bool(one == other)
