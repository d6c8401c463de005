"""The wording of violations: paths, the sentence for a language model, lists of violations.

Owns the texts that all violations share. The texts of each keyword are in
`tooltrail.guard.keywords`. Source of all wordings: tool-output-guard 0.3.2.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tooltrail.guard.violations import Violation, ViolationCode, ViolationSeverity
from tooltrail.jsnumbers import js_number

_ABSENT: Final[Any] = object()


def build_path(parts: Iterable[str | float]) -> str:
    """Join member names and element numbers into a path: `["a", 0, "b"]` → `$.a[0].b`.

    Names are not escaped, whatever they contain.
    """
    return "$" + "".join(
        f".{part}" if isinstance(part, str) else f"[{js_number(part)}]" for part in parts
    )


def llm_message(
    code: ViolationCode, path: str, message: str, received: str | None, expected: str | None
) -> str:
    """Tell a language model what is wrong and what to do. None means unknown.

    Raises ValueError for an unknown code.
    """
    match code:
        case "WRONG_TYPE":
            return (
                f"The field at {path} has the wrong type. Expected {_or(expected, 'unknown')}, "
                f"but got {_or(received, 'unknown')}. Please return the correct type."
            )
        case "MISSING_REQUIRED":
            return (
                f"The field at {path} is required but was not provided. "
                "Please include this field in the output."
            )
        case "UNKNOWN_FIELD":
            return (
                f"The field at {path} is not part of the expected schema. "
                "Please remove it from the output."
            )
        case "CONSTRAINT_VIOLATION":
            return (
                f"The value at {path} violates a constraint. "
                f"Expected {_or(expected, 'a valid value')}, "
                f"but got {_or(received, 'an invalid value')}. Please provide a conforming value."
            )
        case "ENUM_MISMATCH":
            return (
                f"The value at {path} is not one of the allowed values. "
                f"Expected one of: {_or(expected, 'the valid options')}. "
                f"Got: {_or(received, 'an invalid value')}."
            )
        case "PATTERN_MISMATCH":
            return (
                f"The string at {path} does not match the required pattern. "
                f"Expected pattern: {_or(expected, 'a valid pattern')}. "
                f"Got: {_or(received, 'an invalid string')}."
            )
        case "COERCED":
            return (
                f"The value at {path} was automatically coerced from "
                f"{_or(received, 'the original type')} to {_or(expected, 'the expected type')}."
            )
    raise ValueError(f"unknown violation code: {code!r} ({message})")


def _or(text: str | None, otherwise: str) -> str:
    return otherwise if text is None else text


def build_violation(
    code: ViolationCode,
    path: str,
    message: str,
    actual: str | None = None,
    expected: str | None = None,
    severity: ViolationSeverity | None = None,
    received_value: Any = _ABSENT,
    coerced_value: Any = _ABSENT,
    *,
    received: str | None = None,
) -> Violation:
    """Make a violation with its sentence for a language model.

    `actual` describes the value found and becomes the violation's `received`; `received` is
    another name for this parameter. `received_value` and `coerced_value` are stored only if
    given, so that None is a value like any other. Raises ValueError for an unknown code or
    severity, and TypeError if both `actual` and `received` are given. Source:
    tool-output-guard's `buildViolation`.
    """
    if received is not None:
        if actual is not None:
            raise TypeError("give either actual or received, not both")
        actual = received
    violation: dict[str, Any] = {
        "path": path,
        "severity": severity or "error",
        "code": code,
        "expected": expected or "",
        "received": actual or "",
        "message": message,
        "llm_message": llm_message(code, path, message, actual, expected),
    }
    if received_value is not _ABSENT:
        violation["received_value"] = received_value
    if coerced_value is not _ABSENT:
        violation["coerced_value"] = coerced_value
    return Violation(**violation)


def format_violation_message(violation: Violation) -> str:
    """One line for people: `[ERROR] $.name (WRONG_TYPE): Expected type string, got integer`."""
    return (
        f"[{violation.severity.upper()}] {violation.path} ({violation.code}): {violation.message}"
    )


def format_violations_for_llm(violations: Sequence[Violation]) -> str:
    """A numbered list of the violations, ready for a prompt."""
    if not violations:
        return "No violations found."
    lines = "\n".join(
        f"{number}. {violation.llm_message}" for number, violation in enumerate(violations, 1)
    )
    return (
        f"Tool output validation failed with {len(violations)} violation(s):\n\n{lines}\n\n"
        "Please fix the tool output to conform to the expected schema."
    )
