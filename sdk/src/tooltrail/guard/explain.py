"""Lists every violation of a value, in the order and wording of tool-output-guard 0.3.2.

Owns the walk over the node graph. What each keyword checks and reports is in `keywords` and
`keywords_later_drafts`. The walk can remember which value fits which sub-schema, so that no
schema takes exponential time. It stops at a depth that no honest output reaches, and when it has
done as much work as it may (`work`).
"""

from typing import Any, Final, NamedTuple

from tooltrail.guard.format import llm_message
from tooltrail.guard.jsvalues import kind_of
from tooltrail.guard.nodes import Node
from tooltrail.guard.plan import Plan, plan_for
from tooltrail.guard.violations import MORE, Violation, ViolationCode
from tooltrail.guard.work import DECIDED_STEPS, EXPLAINED_STEPS

VALUE_DEPTH_LIMIT: Final = 200  # nested schemas; each takes three or four stack frames

_VIOLATION_STEPS: Final = 16  # for making a violation
_DECIDING_STEPS: Final = 2  # for a verdict on one value by one schema
_TEXT_PER_STEP: Final = 128  # characters in its texts

# Making the models is half the cost of explaining; this saves a third of that half.
_MAKE: Final = Violation.__pydantic_validator__.validate_python

type RawViolation = tuple[ViolationCode, str, str, str, str]
"""A violation before it becomes a model: code, path, message, received, expected."""


def explain(root: Node, value: Any, *, remember: bool, formats: bool) -> list[Violation]:
    """List the violations of `value`; an empty list means valid. `MORE` marks an incomplete list.

    Calls `examine` with the usual limits.
    """
    violations, is_whole, _ = examine(
        root,
        value,
        remember=remember,
        formats=formats,
        steps=EXPLAINED_STEPS,
        patience=DECIDED_STEPS,
    )
    return violations if is_whole else [*violations, MORE]


class Examined(NamedTuple):
    """The result of a walk."""

    violations: list[Violation]
    is_whole: bool
    """Whether the walk was completed."""
    steps: int
    """How many steps it took."""


def examine(
    root: Node, value: Any, *, remember: bool, formats: bool, steps: int, patience: int
) -> Examined:
    """Walk `value` along a schema in at most `steps`, or `patience` if there is no violation yet.

    `remember` costs a little time and memory, and makes schemas polynomial that could take
    exponential time. With `formats` the keyword `format` is checked.
    """
    walk = Walk(remember=remember, formats=formats, steps=steps, patience=patience)
    is_whole = True
    try:
        walk.visit(root, value, "$")
    except _Enough:
        is_whole = False
    except RecursionError:  # called with a nearly full stack, or a cyclic value was printed
        walk.violations = [*walk.violations, _too_deep("$")]
    return Examined([_dressed(*each) for each in walk.violations], is_whole, walk.taken)


class _Enough(Exception):  # noqa: N818  # ends the walk, is not an error
    """Enough work was done."""


class Walk:
    """One walk of a value along a schema. It collects violations, or only decides validity."""

    def __init__(
        self,
        *,
        remember: bool = False,
        formats: bool = False,
        steps: int = EXPLAINED_STEPS,
        patience: int = 0,
    ) -> None:
        self.violations: list[RawViolation] = []
        self._reported = self.violations
        self._steps = steps
        self._allowed = steps
        self._patience = max(steps, patience)
        self._left = steps
        self.formats = formats
        self.remember = remember
        self.deciding = False
        self.depth = 0
        self.verdicts: dict[tuple[int, int], bool] = {}
        self.evaluated: dict[tuple[int, int], frozenset[str | int]] = {}

    @property
    def taken(self) -> int:
        """The steps taken so far."""
        return self._allowed - self._left

    def spend(self, steps: int) -> None:
        """Take steps. Ends the walk if none are left."""
        self._left -= steps
        if self._left < 0:
            self._go_on()

    def _go_on(self) -> None:
        if self._reported or self.taken > self._patience:
            raise _Enough
        self._left += self._patience - self._allowed
        self._allowed = self._patience

    def visit(self, node: Node, value: Any, path: str) -> None:
        """Collect the violations of `value`, which is at `path`."""
        if self.remember:
            if self.fits(node, value):
                return
            if self.deciding:
                self.violations.append(("CONSTRAINT_VIOLATION", path, "", "", ""))
                return
        self._check(node, value, path)

    def fits(self, node: Node, value: Any) -> bool:
        """Whether `value` is valid. Collects nothing, and stops at the first violation."""
        key = (id(node), id(value))  # both outlive the walk
        if self.remember and (known := self.verdicts.get(key)) is not None:
            self.spend(1)
            return known
        self._left -= _DECIDING_STEPS
        collected, self.violations = self.violations, []
        was_deciding, self.deciding = self.deciding, True
        try:
            self._check(node, value, "")
            verdict = not self.violations
        finally:
            self.violations, self.deciding = collected, was_deciding
        if self.remember:
            self.verdicts[key] = verdict
        return verdict

    def _check(self, node: Node, value: Any, path: str) -> None:
        self._left -= 1
        if self._left < 0:
            self._go_on()
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
            self.violations.append(_too_deep(path))
            return
        self.depth += 1
        for check in plan.checks.get(kind, plan.general):
            self._left -= 1
            if self._left < 0:
                self._go_on()
            check(self, value, path)
            if self.deciding and self.violations:
                break
        self.depth -= 1

    def add(
        self, code: ViolationCode, path: str, message: str, received: str, expected: str
    ) -> None:
        """Add a violation."""
        self.violations.append((code, path, message, received, expected))
        texts = len(path) + len(message) + len(received) + len(expected)
        self.spend(_VIOLATION_STEPS + texts // _TEXT_PER_STEP)
        if self._allowed > self._steps and self._reported:
            raise _Enough


def _too_deep(path: str) -> RawViolation:
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
    violation: Violation = _MAKE(
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
    return violation
