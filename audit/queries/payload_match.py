"""Whether an event's bytes hold a text, and where: the rule of the payload search. Pure."""

import json
from dataclasses import dataclass

MAX_NEEDLE = 200
"""Characters of a text that is searched for."""

_AROUND = 90
"""Characters shown either side of what was found."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What was found, with what stands around it."""

    before: str
    found: str
    after: str


def excerpt(raw: bytes, needle: str) -> Excerpt | None:
    """The first place in an event that holds a text, whatever its case; None if none does.

    The event is searched as it was sent; and where it is written with escapes, also as JSON
    says what they stand for.
    """
    found = _find(raw.decode(errors="replace"), needle)
    if found is None and b"\\" in raw:
        try:
            meant = json.dumps(json.loads(raw), ensure_ascii=False)
        except (ValueError, RecursionError):
            return None
        # Within JSON a quote or a backslash of a text stays escaped: look for it as it stands.
        found = _find(meant, needle) or _find(meant, json.dumps(needle, ensure_ascii=False)[1:-1])
    return found


def _find(text: str, needle: str) -> Excerpt | None:
    at = text.find(needle)
    length = len(needle)
    if at < 0:
        folded, at = _fold(text), _fold(text).find(_fold(needle))
        if at < 0:
            return None
        if len(folded) != len(text):  # then places differ: say that it is there, from the start
            return Excerpt("", "", text[: 2 * _AROUND])
    end = at + length
    return Excerpt(text[max(0, at - _AROUND) : at], text[at:end], text[end : end + _AROUND])


def _fold(text: str) -> str:
    return text.casefold()
