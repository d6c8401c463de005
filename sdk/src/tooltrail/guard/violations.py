"""Defines a violation: one place where an output violates its schema.

Owns the model and its codes. Other modules of `tooltrail.guard` find, word and repair
violations. Source: tool-output-guard 0.3.2, `Violation`.
"""

from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

ViolationCode = Literal[
    "WRONG_TYPE",
    "MISSING_REQUIRED",
    "UNKNOWN_FIELD",
    "CONSTRAINT_VIOLATION",
    "ENUM_MISMATCH",
    "PATTERN_MISMATCH",
    "COERCED",
]
McpViolationCode = Literal["MISSING_STRUCTURED_CONTENT"]
"""Beside tool-output-guard's codes: an MCP result without what its output schema describes."""
ViolationSeverity = Literal["error", "warning"]


class Violation(BaseModel):
    """One place where an output breaks its schema.

    `path` is JSONPath-style (`$.items[0].name`). Dumps in snake case by name and, with
    `by_alias=True`, in tool-output-guard's camelCase; `received_value` and
    `coerced_value` are absent unless set (`exclude_unset=True`).
    """

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    path: str
    severity: ViolationSeverity = "error"
    code: ViolationCode | McpViolationCode
    expected: str = ""
    received: str = ""
    received_value: Any = None
    coerced_value: Any = None
    message: str = ""
    llm_message: str = ""


MORE: Final = Violation(
    path="$",
    code="CONSTRAINT_VIOLATION",
    expected="a value that conforms to its schema",
    received="more was not explained",
    message="More was not explained: judging this value takes too much work.",
    llm_message=(
        "The value at $ violates its schema in more places than could be explained, "
        "or takes too much work to be checked. Please return a smaller or simpler value."
    ),
)
"""The last entry of a list that is incomplete. As the only entry it means: rejected unexplained."""


class Judgement(NamedTuple):
    """The result of judging a value."""

    is_valid: bool | None
    """None if the verdict needs more work than was allowed."""
    violations: list[Violation]
    """The last one is `MORE` if there may be others."""
    steps: int
    """How much work was done, in steps."""
