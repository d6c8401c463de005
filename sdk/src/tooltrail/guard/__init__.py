"""Validates what tools return against their schema, and handles output that violates it."""

from tooltrail.guard.detect import (
    DetectedSchema,
    SchemaType,
    detect_schema,
    is_json_schema,
    is_model_schema,
)
from tooltrail.guard.errors import SchemaError
from tooltrail.guard.format import (
    build_path,
    build_violation,
    format_violation_message,
    format_violations_for_llm,
)
from tooltrail.guard.guarding import (
    Guard,
    create_guard,
    enforce,
    guard,
    guard_tools,
    unwrap,
    validate,
    validate_output,
)
from tooltrail.guard.options import (
    CoercionConfig,
    FailureStrategy,
    GuardOptions,
    GuardOutcome,
    Outcome,
    ValidationError,
    ValidationResult,
)
from tooltrail.guard.violations import Violation, ViolationCode, ViolationSeverity

__all__ = [
    "CoercionConfig",
    "DetectedSchema",
    "FailureStrategy",
    "Guard",
    "GuardOptions",
    "GuardOutcome",
    "Outcome",
    "SchemaError",
    "SchemaType",
    "ValidationError",
    "ValidationResult",
    "Violation",
    "ViolationCode",
    "ViolationSeverity",
    "build_path",
    "build_violation",
    "create_guard",
    "detect_schema",
    "enforce",
    "format_violation_message",
    "format_violations_for_llm",
    "guard",
    "guard_tools",
    "is_json_schema",
    "is_model_schema",
    "unwrap",
    "validate",
    "validate_output",
]
