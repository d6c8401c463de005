"""Reads the members of a tool or a record, and collects what is wrong with them.

Owns the shared checks and the wording of their errors. The owner of the members defines which
there are.
"""

from typing import Any, Final, cast

from tooltrail.errors import TooltrailError, ValidationDetail, ValidationException

MISSING: Final[Any] = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""Marks a member that was not given."""


class MemberProblems:
    """Collects all problems, to raise `error` once, with all of them in its cause."""

    def __init__(self, error: type[TooltrailError]) -> None:
        self._error = error
        self._details: list[ValidationDetail] = []

    def add(self, member: str, text: str, kind: str = "invalid") -> None:
        """Note a problem with a member."""
        self._details.append(ValidationDetail(f'"{member}" {text}', (member,), kind))

    def raise_any(self) -> None:
        """Raise `error` if there are problems."""
        if self._details:
            raise self._error from ValidationException(self._details)

    def is_given(self, member: str, value: Any) -> bool:
        """Whether a required member was given. Notes a problem if not."""
        if value is MISSING:
            self.add(member, "is required", "required")
        return value is not MISSING

    def text(self, member: str, value: Any) -> str:
        """Check a required text that must not be empty."""
        if self.is_given(member, value):
            if not isinstance(value, str):
                self.add(member, "must be text")
            elif not value:
                self.add(member, "must not be empty")
        return cast("str", value)

    def flag(self, member: str, value: Any) -> bool:
        """Read a boolean; its text is accepted, too. None is False."""
        if not self.is_given(member, value):
            return False
        if isinstance(value, bool) or value is None:
            return bool(value)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        self.add(member, "must be true or false")
        return False
