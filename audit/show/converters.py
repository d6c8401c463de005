"""URL path converters: days, and the free text of a trace id."""

from datetime import date
from urllib.parse import quote, unquote


class DayConverter:
    """A UTC day: 2026-11-20."""

    regex = r"\d{4}-\d{2}-\d{2}"

    def to_python(self, value: str) -> date:
        return date.fromisoformat(value)

    def to_url(self, value: date) -> str:
        return value.isoformat()


class FreeTextConverter:
    """Free text as one path segment, quoted once more than addresses usually are.

    Servers and browsers undo one level of quoting, then split at slashes and resolve dots. The
    second level keeps any text intact, and text of letters, digits and `_TAME` stays readable.
    """

    regex = r"[^/]+"
    _TAME = ":@!$,;=()*"  # besides letters, digits and _.-~

    def to_python(self, value: str) -> str:
        text = unquote(value, errors="strict")
        if "\x00" in text:
            raise ValueError("PostgreSQL's text holds no NUL")
        return text

    def to_url(self, value: str) -> str:
        quoted = quote(value, safe=self._TAME)
        return quoted.replace(".", "%2E") if set(value) == {"."} else quoted
