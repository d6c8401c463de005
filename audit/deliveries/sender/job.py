"""What the sender is given, and what it answers: one line of JSON each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANSWER_MAX = 200
"""Characters of what a receiver answered that are kept."""


@dataclass(frozen=True, slots=True)
class Job:
    """One message for one channel."""

    id: str
    kind: str
    """Of the channel."""
    channel_id: str
    settings: Mapping[str, Any]
    secrets: Mapping[str, str]
    message: Mapping[str, Any]
    """A document of `audit.deliveries.message`, with `url` and `source` of this server."""
    timeout_s: float = 8.0
    """For each wait: to connect, and for each part of the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How an attempt ended."""

    id: str
    is_delivered: bool
    text: str
    """One line for people."""
    status: int | None = None
    """Of HTTP or SMTP; None if there was no answer."""
    is_refused: bool = False
    """Whether the guard refused an address."""
