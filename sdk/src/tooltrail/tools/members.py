"""Reads the members a tool or a record is made of, and collects what is wrong with them.

Owns the checks such members share and the wording of their faults; which members there are is
their owner's.
"""

from typing import Any, Final, cast

from tooltrail.errors import TooltrailError, ValidationDetail, ValidationException

MISSING: Final[Any] = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""Stands for a member that was not given."""


class MemberProblems:
    """Collects every fault, to raise `error` once, with all of them in its cause."""

    def __init__(self, error: type[TooltrailError]) -> None:
        self._error = error
        self._details: list[ValidationDetail] = []

    def add(self, member: str, text: str, kind: str = "invalid") -> None:
        """Note that a member is at fault."""
        self._details.append(ValidationDetail(f'"{member}" {text}', (member,), kind))

    def raise_any(self) -> None:
        """Raise what was noted, if anything was."""
        if self._details:
            raise self._error from ValidationException(self._details)

    def is_given(self, member: str, value: Any) -> bool:
        """Whether a required member was given; it is a fault if not."""
        if value is MISSING:
            self.add(member, "is required", "required")
        return value is not MISSING

    def text(self, member: str, value: Any) -> str:
        """A required text that is not empty."""
        if self.is_given(member, value):
            if not isinstance(value, str):
                self.add(member, "must be text")
            elif not value:
                self.add(member, "must not be empty")
        return cast("str", value)

    def flag(self, member: str, value: Any) -> bool:
        """True or false, also as text; None is false."""
        if not self.is_given(member, value):
            return False
        if isinstance(value, bool) or value is None:
            return bool(value)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        self.add(member, "must be true or false")
        return False
