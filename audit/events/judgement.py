"""Validate one stored event against two contracts: the current version and a draft. Pure.

The rules are those of the guard (`tooltrail.guard`): its reading of schemas, its paths and codes,
JavaScript's values, patterns in linear time. jsonschema-rs only decides whether a value is valid,
which is enough for most calls. Only invalid values are explained.

Two values of a call are validated: its arguments, and what the tool returned
(`audit.events.outputs`).

Some calls are skipped and counted as such: calls that returned nothing, calls whose payload is
erased, truncated or not captured, and calls whose guard replaced the output without sending the
original. A redacted value is never a violation, as the original is not known.
An MCP result without structured content violates any output schema.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tooltrail.guard import SchemaError
from tooltrail.guard.jsonschema import CompiledSchema, compile_schema
from tooltrail.guard.strip import strip
from tooltrail.guard.violations import MORE, Judgement, Violation
from tooltrail.guard.work import BYTES_READ_PER_STEP, EXPLAINED_STEPS
from tooltrail.mcp_results import MISSING
from tooltrail.redact_text import MARK

from audit.events.outputs import Side, Skipped, Value, read_args, read_output

PATH_MAX: Final = 300
"""Paths are counted by this many characters: a path may contain any member name of an output."""

STEPS: Final = EXPLAINED_STEPS // 2
"""For explaining one value by one contract: 25 ms, as a replay validates it against two."""

_CODES_WITH_VALUE: Final = ("ENUM_MISMATCH", "PATTERN_MISMATCH", "CONSTRAINT_VIOLATION")
_INDEX: Final = re.compile(r"\[\d+\]")


class Kind(NamedTuple):
    """The key by which violations are counted: a path with `[*]` for indexes, and a code."""

    path: str
    code: str


class Verdict(NamedTuple):
    """The violations of one value by each contract, and those its executor reported."""

    now: frozenset[Kind]
    """By the current version."""
    then: frozenset[Kind]
    """By the draft."""
    known: frozenset[Kind]
    """Violations recorded with the call. There are none for arguments."""
    cured: frozenset[Kind]
    """The `known` ones at whose path the draft finds no violation."""


_NONE: Final[frozenset[Kind]] = frozenset()
_NO_PATHS: Final[frozenset[str]] = frozenset()
PASSED: Final = Verdict(_NONE, _NONE, _NONE, _NONE)


class Broken(NamedTuple):
    """A violation of the draft, as shown beside a call. It quotes the payload."""

    path: str
    code: str
    message: str
    received: str
    """The received value, if the message does not contain it; otherwise empty."""

    @property
    def kind(self) -> Kind:
        """The key it is counted by."""
        return _kind(self.path, self.code)


class UnusableSchemaError(ValueError):
    """A schema that the guard cannot use; the message is the reason in one line."""


def judged_output(
    schema: CompiledSchema, raw: bytes, steps: int, *, explain: bool = True
) -> Judgement:
    """Validate what a tool returned, taken from its end event, in at most `steps` steps.

    The verdict is None if it is not known. Without `explain`, violations are not explained.
    """
    read, reading = read_output(raw), len(raw) // BYTES_READ_PER_STEP
    if isinstance(read, str):
        return Judgement(None, [], reading)
    if read.is_missing:
        return Judgement(False, [MISSING], reading)
    judged = schema.judge(read.value, steps) if explain else schema.verdict(read.value, steps)
    judged = judged._replace(steps=judged.steps + reading)
    if not judged.violations or not _may_be_marked(raw):
        return judged
    marked = _marked(read.value)
    unmarked = [each for each in judged.violations if each.path not in marked]
    if not unmarked or (marked and unmarked == [MORE]):
        # The violation may be due to a redacted value.
        return Judgement(None, [], judged.steps)
    return Judgement(False, unmarked, judged.steps)


class Judge:
    """The two compiled schemas of one side. Without a schema (None), every value passes."""

    def __init__(
        self, side: Side, now: Mapping[str, Any] | None, then: Mapping[str, Any] | None
    ) -> None:
        """Raises UnusableSchemaError."""
        self.side = side
        self._now = _compiled(now, f"The current version's {_NAMES[side]}")
        self._then = _compiled(then, f"The draft's {_NAMES[side]}")

    def judge(self, raw: bytes | None) -> Verdict | Skipped:
        """The verdict on an event, or why it was skipped."""
        read = read_output(raw) if self.side == "output" else read_args(raw)
        if isinstance(read, str):
            return read
        raw = raw or b""
        now = _violations_of(self._now, read, raw)
        then = now
        if self._then is not self._now:
            then = _violations_of(self._then, read, raw)
        if now is None or then is None:
            return "costly"
        if not (now or then or read.known):
            return PASSED
        paths = {path for path, _ in then}
        return Verdict(
            _kinds(now),
            _kinds(then),
            _kinds(read.known),
            _kinds(each for each in read.known if each[0] not in paths),
        )

    def explain(self, raw: bytes | None, steps: int = STEPS) -> list[Broken]:
        """The draft's violations in an event, with the guard's messages, in at most `steps`."""
        read = read_output(raw) if self.side == "output" else read_args(raw)
        if isinstance(read, str) or self._then is None:
            return []
        if read.is_missing:
            return [Broken(MISSING.path, MISSING.code, MISSING.message, "")]
        violations = _explained(self._then, _as_judged(self._then, read), steps)
        if violations is None:
            violations = [MORE]
        is_marked = raw is not None and _may_be_marked(raw)
        marked = _marked(read.value) if is_marked else _NO_PATHS
        return [
            Broken(
                each.path,
                each.code,
                each.message,
                each.received if each.code in _CODES_WITH_VALUE else "",
            )
            for each in violations
            if each.path not in marked
        ]


_NAMES: Final = {"output": "output schema", "args": "input schema"}


def _compiled(schema: Mapping[str, Any] | None, name: str) -> CompiledSchema | None:
    if schema is None:
        return None
    try:
        return compile_schema(schema)
    except SchemaError as error:
        raise UnusableSchemaError(f"The {name} cannot be used for validation: {error}") from None


def _violations_of(
    schema: CompiledSchema | None, read: Value, raw: bytes
) -> Collection[tuple[str, str]] | None:
    """Path and code of each violation; None if validation takes more work than is allowed.

    `raw` is the event that the value was read from.
    """
    if schema is None:
        return ()
    if read.is_missing:
        return ((MISSING.path, MISSING.code),)
    violations = _explained(schema, read.value, STEPS, len(raw))
    if violations and read.is_stripped:
        violations = _explained(schema, _as_judged(schema, read), STEPS)
    if violations is None or violations == [MORE]:
        return None
    marked = _marked(read.value) if violations and _may_be_marked(raw) else _NO_PATHS
    return [(each.path, each.code) for each in violations if each.path not in marked]


def _explained(
    schema: CompiledSchema, value: Any, steps: int, length: int | None = None
) -> list[Violation] | None:
    """The violations of a value, explained in at most `steps`; None if its verdict takes more.

    Unlike a guard, which must decide, it gives up: its work delays other tenants. `length` is
    that of the text the value was read from, in bytes, if known.
    """
    judged = schema.judge(value, steps, length=length)
    if judged.is_valid is None:
        judged = schema.verdict(value, EXPLAINED_STEPS)
    return None if judged.is_valid is None else judged.violations


def _as_judged(schema: CompiledSchema, read: Value) -> Any:
    return strip(schema.root, read.value)[0] if read.is_stripped else read.value


def _kinds(violations: Iterable[tuple[str, str]]) -> frozenset[Kind]:
    return frozenset(_kind(path, code) for path, code in violations)


def _kind(path: str, code: str) -> Kind:
    return Kind(_INDEX.sub("[*]", path)[:PATH_MAX], code)


def _may_be_marked(raw: bytes) -> bool:
    """Whether a value may be redacted: a quick test, as a walk takes as long as validation."""
    return MARK.encode() in raw or b"\\u" in raw


def _marked(value: Any) -> frozenset[str]:
    """The paths of redacted values, in the guard's notation."""
    return frozenset(_marks(value))


def _marks(value: Any) -> Iterator[str]:
    waiting = [("$", value)]
    while waiting:
        path, each = waiting.pop()
        if each == MARK:
            yield path
        elif isinstance(each, dict):
            waiting += [(f"{path}.{name}", member) for name, member in each.items()]
        elif isinstance(each, list):
            waiting += [(f"{path}[{at}]", item) for at, item in enumerate(each)]
