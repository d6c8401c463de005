"""The rule of the payload search: whether an event contains a text, and where. Pure."""

import json
from dataclasses import dataclass

MAX_NEEDLE = 200
"""Maximum characters of a text that is searched for."""

_AROUND = 90
"""Characters shown on either side of a match."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A match with the text around it."""

    before: str
    match: str
    after: str


def excerpt(raw: bytes, needle: str) -> Excerpt | None:
    """The first match of a text in an event, ignoring case; None without a match.

    The event is searched as it was sent. If it contains escapes, it is also searched with these
    escapes decoded.
    """
    match = _find(raw.decode(errors="replace"), needle)
    if match is None and b"\\" in raw:
        try:
            meant = json.dumps(json.loads(raw), ensure_ascii=False)
        except (ValueError, RecursionError):
            return None
        # In JSON, a quote or a backslash stays escaped: also search for the escaped text.
        match = _find(meant, needle) or _find(meant, json.dumps(needle, ensure_ascii=False)[1:-1])
    return match


def _find(text: str, needle: str) -> Excerpt | None:
    at = text.find(needle)
    end = at + len(needle)
    if at < 0:
        folded, folded_needle = text.casefold(), needle.casefold()
        at = folded.find(folded_needle)
        if at < 0:
            return None
        end = at + len(folded_needle)
        if len(folded) != len(text):
            at, end = _unfolded(text, at, end)
    return Excerpt(text[max(0, at - _AROUND) : at], text[at:end], text[end : end + _AROUND])


def _unfolded(text: str, start: int, end: int) -> tuple[int, int]:
    """The slice of a text that contains a slice of the casefolded text.

    Casefolding makes one to three characters of each ("ß" becomes "ss"), so positions differ.
    A character of which only a part matches belongs to the slice.
    """
    first, position = 0, 0
    for index, character in enumerate(text):
        if position <= start:
            first = index
        position += len(character.casefold())
        if position >= end:
            return first, index + 1
    return first, len(text)
