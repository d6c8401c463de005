"""What a tenant's admin wants kept out of the log: taken out of events before they are stored.

The rules are the SDK's (`tooltrail.redact`): members by name, texts by pattern; the engine's time
grows linearly with the text, whatever the pattern. They are applied to the bytes of a line, so
that what they do not touch stays as it came, and leaf, index and inbox are made of what is left.
Names, ids and times of the wire contract stay: without them an event would be none.

Rules are known for `BELIEVED_FOR` seconds; without any, that look is all a request pays.
"""

import logging
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import OperationalError
from pydantic.alias_generators import to_camel
from tooltrail.redact import Redactor
from tooltrail.redact_text import MARK, clean_json, decode

from audit.events import wire
from audit.events.body import Line
from tenants.models import TenantSetting
from tenants.scope import tenant_scope

BELIEVED_FOR = 5.0
"""Seconds until every process applies rules that were changed."""
MAX_RULES = 50
MAX_LENGTH = 300

_log = logging.getLogger(__name__)
_KNOWN_MAX = 10_000
_PAYLOADS = {"args", "output"}
_MARKS = re.compile(rf'(?:\\*")?{re.escape(MARK)}(?:\\*")?')
"""A mark in a text, with the quotes that it may have brought: it may stand for an object."""
_CONTRACT = {"type"} | {
    alias
    for struct in (wire.StartEvent, wire.EndEvent, wire.GapEvent)
    for name in struct.__struct_fields__
    for alias in (name, to_camel(name))
    if name not in _PAYLOADS
}
"""Members of an event that are kept as they are, where their value is a plain one."""
_OF_GUARD = {"strategy", "outcome", "violations", "path", "code", "severity"}
_OF_VIOLATIONS = {"path", "code", "severity", "expected"}
"""Of the schema; all else that a violation says is of the value."""
_OF_SPANS = {"trace_id", "span_id", "parent_span_id"}


class Redaction:
    """A tenant's rules, with the SDK's if `defaults`. Raises ValueError saying what is wrong."""

    def __init__(
        self, names: Sequence[str], patterns: Sequence[str], *, defaults: bool = False
    ) -> None:
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
            keys=names, patterns={each: each for each in patterns}, defaults=defaults
        )

    def apply(self, lines: Sequence[Line]) -> list[Line]:
        """The lines without what the rules name."""
        return [Line(line.number, self.clean(line.raw)) for line in lines]

    def clean(self, raw: bytes) -> bytes:
        """A line without what the rules name; the same object if it holds none of it.

        Of bytes that are no JSON nothing is kept: what is a member cannot be told in them.
        """
        try:
            text = raw.decode()
            if self._redactor.is_harmless(text):
                return raw
            event = decode(text)
        except (ValueError, RecursionError):
            return MARK.encode()
        cleaned = clean_json(self._redactor, text, _Judge(self._redactor, event))
        return raw if cleaned is text else cleaned.encode()


def redacted(tenant_id: UUID, lines: Sequence[Line], *, is_otlp: bool) -> Sequence[Line]:
    """The lines as the tenant's admin wants them stored: the very same without rules.

    What comes by OTLP is also cleaned by the SDK's default rules, unless the admin said no.

    A query every `BELIEVED_FOR` seconds, in the tenant's open scope or in one of its own. Raises
    django.db.OperationalError where rules cannot be applied, as when the database is away.
    """
    until, rules = _KNOWN.get(tenant_id, (0.0, _NO_RULES))
    if time.monotonic() >= until:
        rules = _look_up(tenant_id)
    redaction = rules.of_otlp if is_otlp else rules.of_events
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
        return _agree(decode(raw.decode()), decode(stored.decode()))
    except (ValueError, RecursionError):
        return False


class _Rules(NamedTuple):
    of_events: Redaction | None
    of_otlp: Redaction | None


_NO_RULES = _Rules(None, None)
_KNOWN: dict[UUID, tuple[float, _Rules]] = {}


def _look_up(tenant_id: UUID) -> _Rules:
    with tenant_scope(tenant_id):
        setting = (
            TenantSetting.objects.filter(tenant_id=tenant_id)
            .only("redact_names", "redact_patterns", "redact_otlp")
            .first()
        ) or TenantSetting(tenant_id=tenant_id)
    names, patterns = tuple(setting.redact_names), tuple(setting.redact_patterns)
    try:
        of_events = _compiled(names, patterns, defaults=False) if names or patterns else None
        of_otlp = _compiled(names, patterns, defaults=True) if setting.redact_otlp else of_events
    except ValueError as error:
        # Rules were checked when they were saved; another release's engine may know less. What
        # they should keep out is not stored without them: senders keep it and come again.
        _log.error("the redaction rules of tenant %s cannot be applied: %s", tenant_id, error)
        raise OperationalError("redaction rules cannot be applied") from error
    if len(_KNOWN) >= _KNOWN_MAX:
        _KNOWN.clear()
    rules = _Rules(of_events, of_otlp)
    _KNOWN[tenant_id] = time.monotonic() + BELIEVED_FOR, rules
    return rules


@lru_cache(maxsize=200)
def _compiled(names: tuple[str, ...], patterns: tuple[str, ...], *, defaults: bool) -> Redaction:
    return Redaction(names, patterns, defaults=defaults)


class _Judge:
    """What stays of an event whatever the rules say, and what goes though it has no secret name.

    A violation quotes the value that lies at its `path`: if a name on the way is secret, whatever
    the violation says of the value goes.
    """

    def __init__(self, redactor: Redactor, event: Any) -> None:
        self._quotes_secret = [
            redactor.reason_at(path) is not None for path in _paths_of_violations(event)
        ]
        self._position = -1

    def __call__(self, names: Sequence[str], is_container: bool) -> bool | None:
        """True: it stays. False: it goes. None: the rules decide. `names` lead to the value."""
        match names:
            case ["guard", "violations", ""]:
                self._position += 1
            case ["guard", "violations", "", name] if name not in _OF_VIOLATIONS:
                if any(self._quotes_secret[self._position : self._position + 1]):
                    return False
        return _is_kept(names, is_container) or None


def _paths_of_violations(event: Any) -> list[str]:
    """Where the violations of an event lie, in order; "$" for one that does not say."""
    guard = event.get("guard") if isinstance(event, dict) else None
    found = guard.get("violations") if isinstance(guard, dict) else None
    if not isinstance(found, list):
        return []
    paths = [each.get("path") if isinstance(each, dict) else None for each in found]
    return [path if isinstance(path, str) else "$" for path in paths]


def _is_kept(names: Sequence[str], is_container: bool) -> bool:
    """Whether a value must stay for the event to be one; `names` lead to it."""
    match names:
        case [name]:
            return name in _CONTRACT and (not is_container or name == "guard")
        case ["guard", name] | ["guard", "violations", "", name]:
            return name in _OF_GUARD
        case ["otlp", "span", *inner, name] | ["otlp", "merged", "", *inner, name]:
            return name in _OF_SPANS and inner in ([], ["links", ""])
    return False


def _agree(one: Any, other: Any) -> bool:
    if MARK in (one, other):
        return True
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _fits(one, other) or _fits(other, one)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_agree(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    return bool(one == other)


def _fits(cleaned: str, other: str) -> bool:
    """Whether a text could be the other one with marks in place of parts of it."""
    first, *more = _MARKS.split(cleaned)
    if not more or not other.startswith(first):
        return False
    *between, last = more
    at = len(first)
    for part in between:
        at = other.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(other) - at >= len(last) and other.endswith(last)
