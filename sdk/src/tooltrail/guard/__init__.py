"""Validate what tools return against their schema, and decide what happens when it is wrong."""

from tooltrail.guard.violations import Violation, ViolationCode, ViolationSeverity

__all__ = ["Violation", "ViolationCode", "ViolationSeverity"]
