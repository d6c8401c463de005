"""Removes secrets from payloads before anything is written anywhere.

Owns what counts as a secret: members by name, places by path, texts by pattern. Each removal
leaves a mark in its place and a note `{"path", "reason"}`. Patterns run on Rust's regular
expression engine, whose time grows linearly with the text for every pattern.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema, to_jsonable_python

from tooltrail.redact_text import (
    MARK,
    TEXTS_DEEP_MAX,
    URL_WITH_PASSWORD,
    is_json_like,
    without_named,
)

NOTES_MAX = 100  # per payload; further removals are made, but not listed
DEPTH_MAX = 56  # the server accepts 64 levels, and the event around the payload needs a few
_NAMES_REMEMBERED = 4096
_REMEMBERED_CHARACTERS = 200  # longer names are hostile, and would be kept for ever

Note = dict[str, str]
_PathParts = tuple[str, ...]

SECRET_WORDS = (
    "password",
    "pass word",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "cookies",
    "api key",
    "apikey",
    "private key",
    "access key",
)
"""A member is secret if its name contains one of these words: `db_password_old`."""

SECRET_ENDINGS = ("token", "auth", "jwt", "bearer")
"""A member is secret if its name ends in one of these: `access_token`, but not `max_tokens`."""

SECRET_PATTERNS = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "json web token": r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.",
    "bearer token": r"(?i:\bbearer\s+[0-9a-z_.~+/-]{16,})",
    "access key": (
        r"\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{36}|\bsk-[0-9A-Za-z_-]{20,}"
        r"|\btt_[0-9a-f-]{32,36}_"
    ),
}
"""A text is secret if it contains a credential in one of these well-known forms.

The whole text is removed. If the text is JSON, only the member with the credential is removed."""

# What each of these patterns leaves in JSON text, where a `\b` may have become a `\n`.
_PATTERN_TRACES = (
    r"-----BEGIN|eyJ|(?i:bearer)[\s\\]|AKIA[0-9A-Z]{16}|gh[pousr]_[0-9A-Za-z]{36}"
    r"|sk-[0-9A-Za-z_-]{20}|tt_[0-9a-f-]{32}"
)
# Between two words of a name in JSON text: anything but letters and digits, including escapes.
_BETWEEN_WORDS = r"(?:[^0-9A-Za-z\\]|\\+(?:u[0-9A-Fa-f]{4}|[a-z\"/])?)*"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PATH_PART = re.compile(r"\.([^.\[\]]+)|\[(\*|\d+)\]")


class Redactor:
    """Finds and removes secrets.

    - `keys`: further names whose members are removed; `"iban"` also matches `customerIban`.
    - `paths`: places to remove, such as `$.args.customer.email` or `$.output.data[*].name`.
      `*` matches any member or index.
    - `patterns`: regular expressions searched for in every text, with the reason as key.
    - `defaults=False`: do not use the built-in names and patterns.

    Raises ValueError for an invalid path or pattern. Look-around and back-references are
    invalid.
    """

    def __init__(
        self,
        *,
        keys: Iterable[str] = (),
        paths: Iterable[str] = (),
        patterns: Mapping[str, str] | None = None,
        defaults: bool = True,
    ) -> None:
        words = (*(SECRET_WORDS if defaults else ()), *keys)
        endings = SECRET_ENDINGS if defaults else ()
        # A plural is found by its singular. Endings have no plural: `max_tokens` is a number.
        known = tuple(" ".join(_words(word)) for word in words)
        self._words = tuple(f" {word}{end} " for end in ("", "s") for word in known)
        self._endings = tuple(f" {' '.join(_words(word))} " for word in endings)
        self._paths = tuple(_parse_path(path) for path in paths)
        chosen = {**(SECRET_PATTERNS if defaults else {}), **(patterns or {})}
        self._patterns = {reason: _compile(text) for reason, text in chosen.items()}
        # One search instead of many, as almost no text holds a secret.
        self._any_pattern = (
            _compile("|".join(f"(?:{text})" for text in chosen.values())) if chosen else None
        )
        self._has_own_patterns = bool(patterns)
        traces = [_BETWEEN_WORDS.join(map(_spellings, _words(word))) for word in words]
        traces += [f"{_spellings(ending)}[^A-Za-z]" for ending in endings]
        if defaults:
            traces += [_PATTERN_TRACES, URL_WITH_PASSWORD]
        # A name may be written in escapes. They are searched for in the same pass: `in` takes twice
        # the time of the search, because most texts in JSON are full of backslashes.
        self._trace = _compile("|".join([*traces, r"\\u00"]))
        self._verdicts: dict[Any, bool] = {}

    def is_harmless(self, text: str) -> bool:
        """Whether this JSON text certainly holds no secret and is not too deep.

        One search, made in every call. False only means that `clean` must check. This search
        cannot apply the user's own patterns and paths; with any of them it returns False.
        """
        return self.has_no_trace(text) and text.count("{") + text.count("[") <= DEPTH_MAX

    def has_no_trace(self, text: str) -> bool:
        """Whether this JSON text certainly holds no secret, however deep it is."""
        return not (self._has_own_patterns or self._paths or self._trace(text))

    def clean(self, value: Any, path: str = "$") -> tuple[Any, list[Note]]:
        """Return the value without its secrets, and a note for each removal.

        A value that is plain JSON without secrets is returned as the same object, any other as
        a copy. `path` is where the value is in the event. Raises ValueError if the value has no
        JSON form, such as a cycle.
        """
        wanted = [parts for parts in (_below(each, path) for each in self._paths) if parts]
        if not wanted and self._is_clean(value, DEPTH_MAX):
            return value, []
        notes: list[Note] = []
        plain = to_jsonable_python(value, fallback=opaque, bytes_mode="base64")
        return self._scrub(plain, path, wanted, DEPTH_MAX, notes), notes

    def is_secret_name(self, name: Any) -> bool:
        """Whether a member with this name is a secret."""
        verdict = self._verdicts.get(name)
        if verdict is None:
            text = f" {' '.join(_words(name))} " if isinstance(name, str) else ""
            verdict = text.endswith(self._endings) or any(word in text for word in self._words)
            if isinstance(name, str) and len(name) > _REMEMBERED_CHARACTERS:
                return verdict
            if len(self._verdicts) >= _NAMES_REMEMBERED:
                self._verdicts.clear()
            self._verdicts[name] = verdict
        return verdict

    def is_secret_text(self, text: str) -> bool:
        """Whether a text contains a credential, so that the whole text is removed."""
        return self._any_pattern is not None and bool(self._any_pattern(text))

    def clean_text(self, text: str, deep: int = 0) -> tuple[str, str | None]:
        """Return the text without secrets and the reason, or the same object and None.

        Values of secret names are removed in JSON and in pairs such as `name=value`. If a
        pattern matches the rest, the whole text is removed. `deep` is the number of texts around
        this one.
        """
        left = text
        # The user's patterns must search the members of JSON, too; `_trace` covers all others.
        if self._trace(text) or (self._has_own_patterns and is_json_like(text)):
            if deep > TEXTS_DEEP_MAX:
                return MARK, "too deep"
            left = without_named(self, text, deep)
        elif not self._has_own_patterns:
            return text, None
        if self._any_pattern is not None and self._any_pattern(left):
            reasons = (reason for reason, search in self._patterns.items() if search(left))
            return MARK, next(reasons, "pattern")
        return (text, None) if left == text else (left, "name")

    def reason_at(self, path: str) -> str | None:
        """Why a text about the value at `path` must be removed; None if it may stay.

        The reason is a secret name in the path, or a user's path that leads to the value or to
        the items of a list there. Such texts quote list items, but never members of an object.
        """
        parts = tuple(_split_path(path))
        if any(map(self.is_secret_name, parts)):
            return "name"
        for wanted in self._paths:
            fits = all(want in ("*", name) for want, name in zip(wanted, parts, strict=False))
            if fits and all(part == "*" or part.isdecimal() for part in wanted[len(parts) :]):
                return "path"
        return None

    def _is_clean(self, value: Any, depth: int) -> bool:
        """Whether this is plain JSON without secrets."""
        kind = type(value)
        if kind is str:
            return self.clean_text(value)[1] is None
        if value is None or kind is int or kind is bool or kind is float:
            return True
        if depth == 0:
            return False
        if kind is dict:
            verdicts = self._verdicts
            for name, member in value.items():
                if type(name) is not str or (
                    verdicts.get(name, True) and self.is_secret_name(name)
                ):
                    return False
                if not self._is_clean(member, depth - 1):
                    return False
            return True
        if kind is list or kind is tuple:
            for member in value:  # noqa: SIM110  # all() over a generator takes twice as long
                if not self._is_clean(member, depth - 1):
                    return False
            return True
        return False

    def _scrub(
        self, value: Any, path: str, wanted: list[_PathParts], depth: int, notes: list[Note]
    ) -> Any:
        if isinstance(value, str):
            text, reason = self.clean_text(value)
            if reason is not None:
                _note(path, reason, notes)
            return text
        if not isinstance(value, dict | list):
            return value
        if depth == 0:
            return _removed(path, "too deep", notes)
        if isinstance(value, list):
            members: Iterable[tuple[Any, Any]] = enumerate(value)
        else:
            members = value.items()
        scrubbed: dict[Any, Any] = {}
        for name, member in members:
            place = f"{path}[{name}]" if isinstance(value, list) else f"{path}.{name}"
            below = [parts[1:] for parts in wanted if parts[0] in ("*", str(name))]
            if () in below:
                scrubbed[name] = _removed(place, "path", notes)
            elif isinstance(value, dict) and self.is_secret_name(name):
                scrubbed[name] = _removed(place, "name", notes)
            else:
                scrubbed[name] = self._scrub(member, place, below, depth - 1, notes)
        return scrubbed if isinstance(value, dict) else list(scrubbed.values())


def opaque(value: Any) -> str:
    """A placeholder for an object that JSON cannot hold: its type, as its text may be secret."""
    return f"<{type(value).__name__}>"


def _removed(path: str, reason: str, notes: list[Note]) -> str:
    _note(path, reason, notes)
    return MARK


def _note(path: str, reason: str, notes: list[Note]) -> None:
    if len(notes) < NOTES_MAX:
        notes.append({"path": path, "reason": reason})


def _words(name: str) -> list[str]:
    """The words of a name in any style: `dbPassword`, `DB_PASSWORD`, `x-api-key`."""
    return [word.lower() for word in _WORD.findall(name)]


def _spellings(word: str) -> str:
    """A pattern for the spellings of a word in names; `_WORD` finds no others.

    Not `(?i:…)`: the engine searches for literal words eight times as fast.
    """
    return f"(?:{'|'.join(dict.fromkeys((word, word.capitalize(), word.upper())))})"


def _compile(pattern: str) -> Any:
    schema = core_schema.str_schema(pattern=pattern, strict=True, regex_engine="rust-regex")
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError:
        raise ValueError(f"not a supported pattern: {pattern}") from None


def _split_path(path: str) -> Iterator[str]:
    return (match[1] or match[2] for match in _PATH_PART.finditer(path))


def _parse_path(path: str) -> _PathParts:
    """Split `$.args.list[*].name` into its members. Raises ValueError."""
    parts = tuple(_split_path(path))
    spelled = "$" + "".join(match[0] for match in _PATH_PART.finditer(path))
    if not parts or spelled != path:
        raise ValueError(f"not a path such as $.args.customer.email: {path}")
    return parts


def _below(wanted: _PathParts, path: str) -> _PathParts:
    """The rest of a wanted path below `path`; empty if the path leads elsewhere."""
    here = tuple(_split_path(path))
    fits = len(wanted) > len(here) and all(
        want in ("*", name) for want, name in zip(wanted, here, strict=False)
    )
    return wanted[len(here) :] if fits else ()
