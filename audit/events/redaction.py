"""Redaction: remove what a tenant's admin wants kept out of the log, before events are stored.

The rules work as in the SDK (`tooltrail.redact`): members by name, texts by pattern. The engine's
time grows linearly with the text for every pattern. Rules are applied to the bytes of a line, so
the rest of the line stays unchanged. Leaf, index and inbox are made from the redacted line. Names,
ids and times of the wire contract are kept, as an event is invalid without them.

Rules are cached for `BELIEVED_FOR` seconds. Without rules, a request costs only the cache lookup.
"""

import logging
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.db import OperationalError
from pydantic.alias_generators import to_camel
from tooltrail.redact import SECRET_PATTERNS, Redactor
from tooltrail.redact_text import MARK, clean_json, decode

from audit.events import wire
from audit.events.body import Line
from tenants.models import TenantSetting
from tenants.scope import tenant_scope

BELIEVED_FOR = 5.0
"""Seconds until every process applies changed rules."""
MAX_RULES = 50
MAX_LENGTH = 300

_log = logging.getLogger(__name__)
_KNOWN_MAX = 10_000
_PAYLOADS = {"args", "output"}
_MARKS = re.compile(rf'(?:\\*")?{re.escape(MARK)}(?:\\*")?')
"""A mark in a text, with the quotes it may have added: it may replace an object."""


def _kept_members(*structs: type[msgspec.Struct]) -> frozenset[str]:
    names = {name for struct in structs for name in struct.__struct_fields__} - _PAYLOADS
    return frozenset({"type", *names, *map(to_camel, names)})


_CONTRACT = _kept_members(wire.StartEvent, wire.EndEvent, wire.GapEvent)
"""Members of an event that are kept unchanged if their value is no object or array."""
_OF_DECISION = _kept_members(wire.DecisionEvent) - {"reason"}
"""The same of a decision. Its reason may quote the arguments, so the rules apply to it."""
_OF_DEFINITIONS = {"type", "seen_at", "seenAt", "event_id", "eventId"}
_OF_GUARD = {"strategy", "outcome", "violations", "path", "code", "severity"}
_OF_DECIDERS = {"kind", "id"}
_OF_VIOLATIONS = {"path", "code", "severity", "expected"}
"""Members of a violation that come from the schema; all others come from the value."""
_OF_SPANS = {"trace_id", "span_id", "parent_span_id"}


class Redaction:
    """A tenant's rules, plus the SDK's if `defaults`. Raises ValueError for unusable rules."""

    def __init__(
        self, names: Sequence[str], patterns: Sequence[str], *, defaults: bool = False
    ) -> None:
        for rules, what in ((names, "names"), (patterns, "patterns")):
            if len(rules) > MAX_RULES:
                raise ValueError(f"at most {MAX_RULES} {what} are allowed, not {len(rules)}")
            if too_long := [rule for rule in rules if len(rule) > MAX_LENGTH]:
                raise ValueError(f"longer than {MAX_LENGTH} characters: {too_long[0][:40]}…")
        for name in names:
            if not re.search("[A-Za-z0-9]", name):
                raise ValueError(f"a name needs letters or digits: {name}")
        for pattern in patterns:
            if Redactor(patterns={"": pattern}, defaults=False).is_secret_text(""):
                raise ValueError(f"this would remove every text: {pattern}")
        by_text = {each: each for each in patterns}
        self._redactor = Redactor(keys=names, patterns=by_text, defaults=defaults)
        # Of a definition, a member named `password` is a schema, not a secret.
        self._texts = Redactor(
            patterns=by_text | (SECRET_PATTERNS if defaults else {}), defaults=False
        )

    def apply(self, lines: Sequence[Line]) -> list[Line]:
        """The redacted lines."""
        clean = self.clean
        return [
            line if (raw := clean(line.raw)) is line.raw else Line(line.number, raw)
            for line in lines
        ]

    def clean(self, raw: bytes) -> bytes:
        """Redact a line. Returns the same object if no rule matches.

        If the bytes are not JSON, nothing is kept, as members cannot be identified.
        """
        try:
            text = raw.decode()
            if self._redactor.has_no_trace(text):
                return raw
            event = decode(text)
        except (ValueError, RecursionError):
            return MARK.encode()
        if isinstance(event, dict) and event.get("type") == "toolDefinitions":
            cleaned = clean_json(self._texts, text, _judge_definitions)
        else:
            cleaned = clean_json(self._redactor, text, _Judge(self._redactor, event))
        return raw if cleaned is text else cleaned.encode()


def redacted(tenant_id: UUID, lines: Sequence[Line], *, is_otlp: bool) -> Sequence[Line]:
    """Redact lines by the tenant's rules. Without rules, returns the same lines.

    Lines from OTLP are also redacted by the SDK's default rules, unless the admin turned that off.

    One query every `BELIEVED_FOR` seconds, in the tenant's open scope or in a scope of its own.
    Raises django.db.OperationalError if rules cannot be applied, for example without a database.
    """
    rules = _rules(tenant_id)
    redaction = rules.of_otlp if is_otlp else rules.of_events
    return lines if redaction is None else redaction.apply(lines)


def stores_clear_principals(tenant_id: UUID) -> bool:
    """Whether the tenant's admin chose to store principals in clear text. As `redacted`."""
    return _rules(tenant_id).clear_principals


def forget_rules(tenant_id: UUID) -> None:
    """Make this process read the tenant's rules again at the next request."""
    _KNOWN.pop(tenant_id, None)


def are_one_but_for_marks(raw: bytes, stored: bytes) -> bool:
    """Whether two events differ only where one of them was redacted.

    An event that is sent again after a change of rules is the same event.
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
    clear_principals: bool


_NO_RULES = _Rules(None, None, False)
_KNOWN: dict[UUID, tuple[float, _Rules]] = {}


def _rules(tenant_id: UUID) -> _Rules:
    until, rules = _KNOWN.get(tenant_id, (0.0, _NO_RULES))
    return rules if time.monotonic() < until else _load_rules(tenant_id)


def _load_rules(tenant_id: UUID) -> _Rules:
    with tenant_scope(tenant_id):
        setting = (
            TenantSetting.objects.filter(tenant_id=tenant_id)
            .only("redact_names", "redact_patterns", "redact_otlp", "clear_principals")
            .first()
        ) or TenantSetting(tenant_id=tenant_id)
    names, patterns = tuple(setting.redact_names), tuple(setting.redact_patterns)
    try:
        of_events = _compiled(names, patterns, defaults=False) if names or patterns else None
        of_otlp = _compiled(names, patterns, defaults=True) if setting.redact_otlp else of_events
    except ValueError as error:
        # Rules were validated when they were saved, but another release's engine may reject them.
        # Nothing is stored unredacted: senders keep their events and retry.
        _log.error("the redaction rules of tenant %s cannot be applied: %s", tenant_id, error)
        raise OperationalError("redaction rules cannot be applied") from error
    if len(_KNOWN) >= _KNOWN_MAX:
        _KNOWN.clear()
    rules = _Rules(of_events, of_otlp, setting.clear_principals)
    _KNOWN[tenant_id] = time.monotonic() + BELIEVED_FOR, rules
    return rules


@lru_cache(maxsize=200)
def _compiled(names: tuple[str, ...], patterns: tuple[str, ...], *, defaults: bool) -> Redaction:
    return Redaction(names, patterns, defaults=defaults)


def _judge_definitions(names: Sequence[str], is_container: bool) -> bool | None:
    """Keep what identifies the tools; patterns decide about all other texts."""
    match names:
        case [name]:
            return (name in _OF_DEFINITIONS and not is_container) or None
        case ["server" | "client", "name" | "version"]:
            return True
        case ["tools", "", "name"] | ["tools", "", "function", "name"]:
            return True
    return None


class _Judge:
    """Decides what is always kept of an event, and what is removed without a secret name.

    A violation quotes the value at its `path`. If a name in that path is secret, all members of the
    violation that come from the value are removed.
    """

    def __init__(self, redactor: Redactor, event: Any) -> None:
        self._quotes_secret = [
            redactor.reason_at(path) is not None for path in _paths_of_violations(event)
        ]
        self._position = -1
        self._is_decision = isinstance(event, dict) and event.get("type") == "toolCallDecision"

    def __call__(self, names: Sequence[str], is_container: bool) -> bool | None:
        """True: keep. False: remove. None: the rules decide. `names` is the path to the value."""
        if self._is_decision:
            match names:
                case ["by"]:
                    return is_container or None
                case ["by", name]:
                    return name in _OF_DECIDERS or None
                case ["violations", *_]:
                    names = ["guard", *names]  # in the form of a guard's violations
        match names:
            case ["guard", "violations", ""]:
                self._position += 1
            case ["guard", "violations", "", name] if name not in _OF_VIOLATIONS:
                if any(self._quotes_secret[self._position : self._position + 1]):
                    return False
        contract = _OF_DECISION if self._is_decision else _CONTRACT
        return _is_kept(names, is_container, contract) or None


def _paths_of_violations(event: Any) -> list[str]:
    """The paths of an event's violations, in order; "$" for a violation without a path."""
    holder = event if isinstance(event, dict) else None
    if holder is not None and holder.get("type") != "toolCallDecision":
        holder = holder.get("guard")
    violations = holder.get("violations") if isinstance(holder, dict) else None
    if not isinstance(violations, list):
        return []
    paths = [each.get("path") if isinstance(each, dict) else None for each in violations]
    return [path if isinstance(path, str) else "$" for path in paths]


def _is_kept(names: Sequence[str], is_container: bool, contract: frozenset[str]) -> bool:
    """Whether the event is invalid without a value. `names` is the path to it."""
    match names:
        case [name]:
            return name in contract and (not is_container or name == "guard")
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
    """Whether `cleaned` could be `other` with parts of it replaced by marks."""
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
