"""Validators in native code, by jsonschema-rs, which is loaded when the first one is needed.

Owns the library: with its meta-schemas it takes 12 MiB, and most processes that record calls check
no schema.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_META: Final = {
    "07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_CLASSES: Final = {
    "07": "Draft7Validator",
    "2019-09": "Draft201909Validator",
    "2020-12": "Draft202012Validator",
}
# A compiled pattern may take 1 MiB: `(a{1000}){1000}` is rejected within milliseconds.
_PATTERN_BYTES: Final = 1 << 20


@cache
def form_validator(draft: str) -> "Validator":
    """Validates schemas of a draft: `07`, `2019-09` or `2020-12`."""
    return _make(draft, {"$ref": _META[draft]}, validate_formats=False)


def schema_validator(draft: str, schema: Any, *, validate_formats: bool) -> "Validator":
    """Validates values by a schema. Raises ValueError for a schema with a lone surrogate."""
    from jsonschema_rs import RegexOptions

    options = RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    return _make(
        draft, schema, validate_formats=validate_formats, pattern_options=options, offline=True
    )


def pattern_validator(pattern: str) -> "Validator":
    """Validates texts by a pattern of Rust's `regex`. Raises ValueError if it is too large."""
    return schema_validator("2020-12", {"pattern": pattern}, validate_formats=False)


@lru_cache(maxsize=64)
def format_validator(name: str) -> "Validator":
    """Validates texts by a format of JSON Schema, such as `date`."""
    return _make("2020-12", {"format": name}, validate_formats=True)


def _make(draft: str, schema: Any, **options: Any) -> "Validator":
    import jsonschema_rs

    validator: Validator = getattr(jsonschema_rs, _CLASSES[draft])(schema, **options)
    return validator
