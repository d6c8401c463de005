"""Why arguments were refused: violations of the input schema in the form of the wire contract."""

from typing import Any, Final, get_args

from tooltrail.errors import ValidationDetail, ValidationException
from tooltrail.events import VIOLATIONS_MAX
from tooltrail.guard.format import build_path
from tooltrail.guard.violations import ViolationCode

_CODES: Final[dict[str, ViolationCode]] = {
    **{code: code for code in get_args(ViolationCode)},
    "missing": "MISSING_REQUIRED",
    "missing_argument": "MISSING_REQUIRED",
    "extra_forbidden": "UNKNOWN_FIELD",
    "literal_error": "ENUM_MISMATCH",
    "enum": "ENUM_MISMATCH",
    "string_pattern_mismatch": "PATTERN_MISMATCH",
}


def violations_of(error: BaseException | None) -> list[dict[str, Any]]:
    """The violations of an input schema that an `InvalidToolArgs` was raised from."""
    if not isinstance(error, ValidationException):
        return []
    return [_violation(detail) for detail in error.details[:VIOLATIONS_MAX]]


def _violation(detail: ValidationDetail) -> dict[str, Any]:
    kind, context = detail.type, detail.context
    code = _CODES.get(kind) or (
        "WRONG_TYPE" if kind.endswith(("_type", "_parsing")) else "CONSTRAINT_VIOLATION"
    )
    return {
        "path": build_path(detail.path),
        "code": code,
        "expected": str(context.get("expected", "")),
        "received": str(context.get("received", "")),
        "message": detail.message,
    }
