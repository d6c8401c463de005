"""Text from agents for pages: no character of it can hide or reverse the text beside it."""

import re
from html import escape

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

# Control characters except white space, soft hyphen, bidirectional marks and overrides, invisible
# joiners and tags, lone surrogates. U+200C and U+200D stay: scripts and emoji need them.
_HIDDEN = re.compile(
    "([\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad"
    "\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff])"
)
# Also joiners, variation selectors and other characters without a shape: where two texts are
# compared, what cannot be seen is what matters.
_UNSEEN = re.compile(
    _HIDDEN.pattern[:-2] + "\u200c\u200d\u034f\ufe00-\ufe0f\ue000-\uf8ff\U000f0000-\U0010ffff])"
)


def plain(text: str) -> str:
    """Like `visible`, but without markup, for titles."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible(text: str) -> SafeString:
    """Text from an agent as HTML; characters that would hide or reverse it are shown as escapes."""
    return _escaped(_HIDDEN, text)


def exact(text: str) -> SafeString:
    """Like `visible`, and every character without a shape of its own is shown as an escape."""
    return _escaped(_UNSEEN, text)


def _escaped(characters: re.Pattern[str], text: str) -> SafeString:
    if not characters.search(text):
        return SafeString(escape(text))
    parts = characters.split(text)
    shown = [
        format_html('<span class="j-escape">\\u{}</span>', f"{ord(part):04x}")
        if position % 2
        else format_html("{}", part)
        for position, part in enumerate(parts)
    ]
    return format_html_join("", "{}", ((one,) for one in shown))
