"""Principals: a person on whose behalf calls are made, or who approved one, becomes a pseudonym.

Before anything is stored, hashed into a leaf or indexed, unless the tenant's admin chose clear
text. A pseudonym is `~`, the id of its key, and an HMAC-SHA-256 of the text with a key that is
the tenant's own: `~3fa9c1.Qk3v…`. The same text has the same pseudonym, so a principal's calls
are found, counted and erased by it; an admin who knows the text can look it up.

Replaced are `principal` and `user` in the `context` of events, `requested_by` and persons in `by`
of decisions, and the attributes of spans that name a person (`PERSONS`). Payloads, prompts and
texts are not searched: redaction rules are for them.
"""

import hmac
import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db import OperationalError
from tooltrail.redact_text import MARK

from audit.events.any_json import ANY_JSON
from audit.events.body import Line
from audit.events.decode import members_of
from audit.events.redaction import stores_clear_principals
from audit.events.spans import Span
from audit.intake.otlp.conventions import CONTEXT
from audit.intake.otlp.decisions import APPROVERS
from audit.intake.principal_keys import stored_keys
from config.private_files import PrivateFileError

PSEUDONYM: Final = re.compile(r"~[0-9a-f]{6}\.[A-Za-z0-9_-]{16}")
PERSONS: Final = frozenset(
    {
        *(name for name in CONTEXT["principal"] if "/" not in name),
        *APPROVERS,
        *("user.email", "user.name", "user.full_name", "user.account_id", "user.account_uuid"),
        *("enduser.email", "enduser.name", "langfuse.user.id"),
    }
)
"""Attributes of spans and log records that name a person."""

_IN_METADATA: Final = frozenset(
    name.partition("/")[2] for name in CONTEXT["principal"] if "/" in name
)
_REMEMBERED: Final = 1_000  # bytes of a context; longer ones would fill the memory
_BYTES: Final = 12  # 96 bits: no two of a tenant's principals share them
_IN_CONTEXT: Final = ("principal", "user")
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[4-7]")
"""A name with an escaped letter may be one of ours; no encoder writes that."""
_log = logging.getLogger(__name__)


class _Event(msgspec.Struct):
    context: msgspec.Raw = msgspec.Raw(b"")


_NAME: Final = b'"context"'
_DECODER: Final = msgspec.json.Decoder(_Event)


class Pseudonyms:
    """The pseudonyms of a tenant's principals. Raises PrivateFileError without readable keys."""

    def __init__(self, tenant_id: UUID) -> None:
        self._keys = [(key.id, _of_tenant(key.secret, tenant_id)) for key in stored_keys()]

    def of(self, text: str) -> str:
        """The pseudonym of a text by the newest key. A pseudonym and a removed value stay."""
        if not text or PSEUDONYM.fullmatch(text) or MARK in text:
            return text
        return _pseudonym(*self._keys[-1], text)

    def all_of(self, text: str) -> list[str]:
        """The pseudonyms of a text by each key, the newest first."""
        return [_pseudonym(*key, text) for key in reversed(self._keys)]

    def hide(self, raw: bytes) -> bytes:
        """A line without principals: the same object if it names none.

        A line that may name one and is no JSON is not kept, as members cannot be identified.
        """
        # Each search takes half a microsecond for each event: as few as possible.
        is_decision = b'"toolCallDecision"' in raw
        if b"\\" in raw and b"\\u00" in raw and _ESCAPED_LETTER.search(raw) is not None:
            return self._hide_members(raw)
        at = raw.find(_NAME)
        if at < 0:
            return self._hide_members(raw) if is_decision else raw
        if is_decision or raw.find(_NAME, at + 1) >= 0:
            return self._hide_members(raw)
        try:
            context = bytes(_DECODER.decode(raw).context)
        except (msgspec.MsgspecError, RecursionError):
            return self._hide_members(raw)
        if not context:  # the name is a value, or inside of one
            return raw
        hidden = self._hide_context(context)
        if hidden == context:
            return raw
        begin = raw.index(context, at)
        return raw[:begin] + hidden + raw[begin + len(context) :]

    def hide_in_span(self, span: Span) -> None:
        """Replace the principals in the attributes of a span and its events."""
        self.hide_in(span.attributes)
        for event in span.events:
            self.hide_in(event.attributes)

    def hide_in(self, attributes: dict[str, Any]) -> None:
        """Replace the principals in the attributes of a span, an event of it, or a resource."""
        for name in PERSONS.intersection(attributes):
            attributes[name] = self._hidden(attributes[name])
        if isinstance(text := attributes.get("metadata"), str):
            attributes["metadata"] = self._hide_metadata(text)

    def _hide_members(self, raw: bytes) -> bytes:
        parts: list[bytes] = []
        copied_to = 0
        try:
            for name, start, end in members_of(raw, strict=True):
                value = raw[start:end]
                hidden = self._hide_member(name, value)
                if hidden != value:
                    parts += (raw[copied_to:start], hidden)
                    copied_to = end
        except ValueError:
            return MARK.encode()
        return b"".join((*parts, raw[copied_to:])) if parts else raw

    def _hide_member(self, name: str, value: bytes) -> bytes:
        if name not in ("context", "requested_by", "requestedBy", "by"):
            return value
        try:
            decoded = ANY_JSON.decode(value)
        except (msgspec.MsgspecError, RecursionError):
            return msgspec.json.encode(MARK)
        if name == "context":
            return self._hide_context(value)
        if name != "by":
            return msgspec.json.encode(self._hidden(decoded))
        if isinstance(decoded, dict) and decoded.get("kind") == "person":
            persons = {
                each: self._hidden(decoded[each]) for each in ("id", "name") if each in decoded
            }
            return msgspec.json.encode(decoded | persons)
        return value

    def _hide_context(self, context: bytes) -> bytes:
        hide = _hide_again if len(context) <= _REMEMBERED else _hide_context
        return hide(*self._keys[-1], context)

    def _hide_metadata(self, text: str) -> str:
        if not any(name in text for name in _IN_METADATA):
            return text
        try:
            decoded = ANY_JSON.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return text
        if not isinstance(decoded, dict) or _IN_METADATA.isdisjoint(decoded):
            return text
        hidden = {name: self._hidden(decoded[name]) for name in _IN_METADATA & decoded.keys()}
        return msgspec.json.encode(decoded | hidden).decode()

    def _hidden(self, value: Any) -> Any:
        return _hidden(*self._keys[-1], value)


def hidden(tenant_id: UUID, lines: Sequence[Line]) -> Sequence[Line]:
    """Lines without principals, or the same lines if the tenant stores clear text.

    Raises django.db.OperationalError if the keys cannot be read: nothing is then stored.
    """
    if stores_clear_principals(tenant_id):
        return lines
    hide = _pseudonyms(tenant_id).hide
    hidden_lines = []
    for line in lines:
        raw = hide(line.raw)
        hidden_lines.append(line if raw is line.raw else Line(line.number, raw))
    return hidden_lines


def hide_in_spans(tenant_id: UUID, spans: Iterable[Span]) -> None:
    """Replace the principals in spans, unless the tenant stores clear text. Raises as `hidden`."""
    if not stores_clear_principals(tenant_id):
        pseudonyms = _pseudonyms(tenant_id)
        resources: dict[int, dict[str, Any]] = {}  # the spans of one share the object
        for span in spans:
            pseudonyms.hide_in_span(span)
            resources[id(span.resource)] = span.resource
        for resource in resources.values():
            pseudonyms.hide_in(resource)


def _pseudonyms(tenant_id: UUID) -> Pseudonyms:
    try:
        return Pseudonyms(tenant_id)
    except PrivateFileError as error:
        _log.error("principals cannot be replaced: %s", error)
        raise OperationalError("principals cannot be replaced") from error


@lru_cache(maxsize=1_000)
def _of_tenant(secret: bytes, tenant_id: UUID) -> bytes:
    return hmac.digest(secret, b"tooltrail principal\0" + tenant_id.bytes, "sha256")


@lru_cache(maxsize=20_000)
def _pseudonym(key_id: str, key: bytes, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return f"~{key_id}.{urlsafe_b64encode(hmac.digest(key, data, 'sha256')[:_BYTES]).decode()}"


def _hidden(key_id: str, key: bytes, value: Any) -> Any:
    """A value's pseudonym; of a value that is no text, that of its JSON. Null and '' stay."""
    if value is None or value == "":
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if PSEUDONYM.fullmatch(text) or MARK in text:
        return text
    return _pseudonym(key_id, key, text)


def _hide_context(key_id: str, key: bytes, context: bytes) -> bytes:
    try:
        decoded = ANY_JSON.decode(context)
    except (msgspec.MsgspecError, RecursionError):
        return msgspec.json.encode(MARK)
    if not isinstance(decoded, dict):
        return context
    persons = {name: _hidden(key_id, key, decoded[name]) for name in _IN_CONTEXT if name in decoded}
    if all(decoded[name] == person for name, person in persons.items()):
        return context
    return msgspec.json.encode(decoded | persons)


_hide_again = lru_cache(maxsize=5_000)(_hide_context)  # the calls of a run have the same context
