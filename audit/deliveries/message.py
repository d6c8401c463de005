"""What is delivered: a message about an alert, and its document. No payload is part of it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

import msgspec

type Fact = str | int | float | bool | None

Kind = Literal["fired", "repeated", "resolved", "test"]
"""`repeated`: the alert is still open, and its rule asks for repeated messages."""
KINDS: tuple[str, ...] = get_args(Kind)
Severity = Literal["warning", "alert"]
TEXT_MAX = 2_000
_TITLE_MAX = 200


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message about an alert. Texts that are too long for a channel are cut when it is stored."""

    id: UUID
    """The same in every attempt, so that a receiver can tell repeats."""
    kind: Kind
    rule: str
    """The rule's name."""
    severity: Severity
    title: str
    """One line."""
    text: str
    """A few sentences."""
    link: str
    """Where to look: a path of this server, such as `/alerts/…`."""
    facts: Mapping[str, Fact]
    """Figures and names, such as the value and the threshold. Never a payload."""
    at: datetime


def to_document(message: Message) -> dict[str, Any]:
    """The message as JSON values, as it is stored and given to the sender."""
    document: dict[str, Any] = msgspec.to_builtins(message)
    return document | {
        "title": _one_line(message.title)[:_TITLE_MAX],
        "rule": _one_line(message.rule)[:_TITLE_MAX],
        "text": message.text[:TEXT_MAX],
        "at": message.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }


def _one_line(text: str) -> str:
    """A text without line breaks, which would end a header of a mail."""
    return " ".join(text.splitlines())
