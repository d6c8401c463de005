"""Every violation of a value, in the order and the words of tool-output-guard 0.3.2.

Owns the walk over the node graph. What each keyword checks and
says is in `keywords` and `morekeywords`. The
walk can remember which value fits which sub-schema, so that no schema takes exponential
time, and it stops at a depth and a number of violations that no honest output reaches.
"""

from typing import Any, Final

from tooltrail.guard.format import llm_message
from tooltrail.guard.jsvalues import kind_of
from tooltrail.guard.nodes import Node
from tooltrail.guard.plan import Plan, plan_for
from tooltrail.guard.violations import Violation, ViolationCode

VALUE_DEPTH_LIMIT: Final = 200  # schemas inside schemas; three or four stack frames each
VIOLATION_LIMIT: Final = 10_000  # nobody reads more, and a hostile schema makes any number

# Half the cost of explaining is making the models; this skips a third of that.
_MAKE: Final = Violation.__pydantic_validator__.validate_python

type Found = tuple[ViolationCode, str, str, str, str]
"""A violation before it is dressed up: code, path, message, received, expected."""


def explain(root: Node, value: Any, *, remember: bool, formats: bool) -> list[Violation]:
    """List every violation of `value`; none means that it is valid.

    `remember` trades a little time and memory for polynomial time on schemas that could
    take exponential. With `formats` the keyword `format` counts.
    """
    walk = Walk(remember=remember, formats=formats)
    try:
        walk.visit(root, value, "$")
    except _Enough:
        pass
    except RecursionError:  # called with the stack nearly full, or a cyclic value was printed
        walk.found.append(_too_deep("$"))
    return [_dressed(*found) for found in walk.found[:VIOLATION_LIMIT]]


class _Enough(Exception):  # noqa: N818 - a way out, not an error
    """Enough violations were found."""


class Walk:
    """One walk of a value along a schema, collecting what is wrong or only whether."""

    def __init__(self, *, remember: bool, formats: bool) -> None:
        self.found: list[Found] = []
        self.formats = formats
        self.remember = remember
        self.deciding = False
        self.depth = 0
        self.verdicts: dict[tuple[int, int], bool] = {}
        self.evaluated: dict[tuple[int, int], frozenset[str | int]] = {}

    def visit(self, node: Node, value: Any, path: str) -> None:
        """Find what is wrong with `value`, which lies at `path`."""
        if self.remember:
            if self.fits(node, value):
                return
            if self.deciding:
                self.found.append(("CONSTRAINT_VIOLATION", path, "", "", ""))
                return
        self._check(node, value, path)

    def fits(self, node: Node, value: Any) -> bool:
        """Is `value` valid? Finds nothing, and stops at the first thing wrong."""
        key = (id(node), id(value))  # both outlive the walk
        if self.remember and (known := self.verdicts.get(key)) is not None:
            return known
        collected, self.found = self.found, []
        was_deciding, self.deciding = self.deciding, True
        try:
            self._check(node, value, "")
            verdict = not self.found
        finally:
            self.found, self.deciding = collected, was_deciding
        if self.remember:
            self.verdicts[key] = verdict
        return verdict

    def _check(self, node: Node, value: Any, path: str) -> None:
        if node.always is not None:
            if not node.always:
                message = f"No value is allowed here ({node.under})"
                self.add("CONSTRAINT_VIOLATION", path, message, kind_of(value), "no value")
            return
        plan: Plan = node.plan or plan_for(node)
        kind = kind_of(value)
        if plan.accepts is not None and kind not in plan.accepts:
            message = f"Expected type {plan.type_text}, got {kind}"
            self.add("WRONG_TYPE", path, message, kind, plan.type_text)
            return
        if self.depth >= VALUE_DEPTH_LIMIT:
            self.found.append(_too_deep(path))
            return
        self.depth += 1
        for check in plan.checks.get(kind, plan.general):
            check(self, value, path)
            if self.deciding and self.found:
                break
        self.depth -= 1

    def add(
        self, code: ViolationCode, path: str, message: str, received: str, expected: str
    ) -> None:
        """Note a violation."""
        self.found.append((code, path, message, received, expected))
        if len(self.found) >= VIOLATION_LIMIT:
            raise _Enough


def _too_deep(path: str) -> Found:
    return (
        "CONSTRAINT_VIOLATION",
        path,
        "Value is nested too deeply to be checked",
        "deeper nesting",
        f"at most {VALUE_DEPTH_LIMIT} levels",
    )


def _dressed(
    code: ViolationCode, path: str, message: str, received: str, expected: str
) -> Violation:
    made: Violation = _MAKE(
        {
            "path": path,
            "severity": "error",
            "code": code,
            "expected": expected,
            "received": received,
            "message": message,
            "llm_message": llm_message(code, path, message, received, expected),
        }
    )
    return made
