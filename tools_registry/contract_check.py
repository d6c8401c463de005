"""Validates a contract that a person types, and pasted examples. Pure.

The rules are the same as for executors (`tools_registry.schemas`). Examples are validated as the
guard validates outputs, so that an example has the same result in both places.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import jsonschema_rs
from pydantic import ValidationError
from tooltrail.guard import Violation
from tooltrail.guard.jsonschema import CompiledSchema
from tooltrail.guard.work import BYTES_READ_PER_STEP, EXPLAINED_STEPS

from tools_registry.schemas import (
    DEPTH_MAX,
    SCHEMAS,
    ToolContract,
    check_schema,
    compile_for_judging,
)

PROBLEMS_MAX: Final = 10
"""Maximum number of problems listed per document."""
EXAMPLES_MAX: Final = 20
VIOLATIONS_MAX: Final = 20
"""Maximum number of violations listed per example."""
EXAMPLES_STEPS: Final = 2 * EXPLAINED_STEPS
"""Steps for all examples together: 0.1 s. One example gets at most `EXPLAINED_STEPS`."""

_SEPARATOR: Final = re.compile(r"^[^\S\n]*-{3,}[^\S\n]*$", re.MULTILINE)
_META: Final[Mapping[str, tuple[type[jsonschema_rs.Validator], str]]] = {
    "draft-04": (jsonschema_rs.Draft4Validator, "http://json-schema.org/draft-04/schema#"),
    "draft-06": (jsonschema_rs.Draft6Validator, "http://json-schema.org/draft-06/schema#"),
    "draft-07": (jsonschema_rs.Draft7Validator, "http://json-schema.org/draft-07/schema#"),
    "2019-09": (
        jsonschema_rs.Draft201909Validator,
        "https://json-schema.org/draft/2019-09/schema",
    ),
    "2020-12": (
        jsonschema_rs.Draft202012Validator,
        "https://json-schema.org/draft/2020-12/schema",
    ),
}
"""The validator of each draft, and the address of its own schema."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a member of the contract."""

    member: str
    message: str
    pointer: str = ""
    """JSON pointer into the member's document; '' for the whole document or without one."""
    line: int = 0
    """Line of the syntax error, from 1; 0: the text is JSON."""
    column: int = 0
    """Column in that line, from 1."""
    is_warning: bool = False
    """Whether the contract can be saved and published anyway."""


@dataclass(frozen=True, slots=True)
class Example:
    """A pasted value and the result of its validation."""

    member: str
    """The schema that it was validated against."""
    number: int
    problem: str
    """Why it could not be validated; '' if it was."""
    violations: tuple[Violation, ...] = ()
    further: int = 0

    @property
    def fits(self) -> bool:
        """Whether it is valid."""
        return not self.problem and not self.violations


@dataclass(slots=True)
class Checked:
    """The result of the check; `contract` is None unless it can be saved."""

    contract: ToolContract | None = None
    problems: list[Problem] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)


def check_typed(
    name: str,
    typed: Mapping[str, Any],
    examples: Mapping[str, str],
    *,
    known: Iterable[Mapping[str, Any] | None] = (),
) -> Checked:
    """Check typed members of a contract: documents as text, other members as they are.

    `examples` are texts by schema; lines of `---` separate several examples in a text. `known`
    are schemas in use: if the guard cannot use a schema, a known one gives a warning and a new
    one an error.
    """
    checked = Checked()
    members = dict(typed)
    compiled: dict[str, CompiledSchema | None] = {}
    for member in (*SCHEMAS, "meta"):
        text = typed[member].strip()
        if not text:
            members[member] = {} if member == "meta" else None
            if member == "input_schema":
                checked.problems.append(
                    Problem(member, 'is missing. {"type": "object"} accepts anything')
                )
            continue
        document, problem = _read(member, text)
        if problem is not None:
            checked.problems.append(problem)
            continue
        members[member] = document
        if member in SCHEMAS:
            problems = _schema_problems(member, document)
            if not problems:
                compiled[member], problems = _compiled(member, document, document in list(known))
            checked.problems += problems
    steps = EXAMPLES_STEPS
    for member in SCHEMAS:
        judged, steps = _judged(member, examples.get(member, ""), compiled.get(member), steps)
        checked.examples += judged
    if any(not problem.is_warning for problem in checked.problems):
        return checked
    try:
        checked.contract = ToolContract.model_validate({**members, "name": name})
    except ValidationError as error:
        for each in error.errors(include_url=False, include_context=False):
            message = each["msg"].removeprefix("Value error, ")
            checked.problems.append(Problem(str(each["loc"][0]), message))
    return checked


def _read(member: str, text: str) -> tuple[Any, Problem | None]:
    try:
        document = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        return None, Problem(member, message, line=error.lineno, column=error.colno)
    except ValueError as error:  # also for a number with more digits than Python reads
        return None, Problem(member, f"is not supported JSON: {error}")
    except RecursionError:
        return None, Problem(member, f"is nested deeper than {DEPTH_MAX} levels")
    if not isinstance(document, dict):
        return None, Problem(member, "is not a JSON object")
    return document, None


def _schema_problems(member: str, schema: dict[str, Any]) -> list[Problem]:
    try:
        check_schema(schema)
    except ValueError as error:
        return _by_metaschema(member, schema) or [Problem(member, str(error))]
    return []


def _by_metaschema(member: str, schema: dict[str, Any]) -> list[Problem]:
    """The problems found by the metaschema, each with its JSON pointer."""
    declared = schema.get("$schema", "2020-12")
    draft = next((draft for draft in _META if draft in str(declared)), None)
    problems: list[Problem] = []
    try:
        for error in _validator_of(draft).iter_errors(schema) if draft else ():
            parts = (str(p).replace("~", "~0").replace("/", "~1") for p in error.instance_path)
            pointer = "".join(f"/{part}" for part in parts)
            problems.append(Problem(member, error.message[:300], pointer))
            if len(problems) == PROBLEMS_MAX:
                break
    except ValueError:  # a lone surrogate: check_schema has reported it
        return []
    return problems


@cache
def _validator_of(draft: str) -> jsonschema_rs.Validator:
    # Made when the first schema is wrong: all five take 6 MB, in each process.
    make, address = _META[draft]
    return make({"$ref": address})


def _compiled(
    member: str, schema: dict[str, Any], is_known: bool
) -> tuple[CompiledSchema | None, list[Problem]]:
    try:
        return compile_for_judging(schema), []
    except ValueError as error:
        return None, [Problem(member, str(error), is_warning=is_known)]


def _judged(
    member: str, text: str, schema: CompiledSchema | None, steps: int
) -> tuple[list[Example], int]:
    """Judge the examples of one schema in at most `steps`. Returns also how many are left."""
    texts = [each.strip() for each in _SEPARATOR.split(text)]
    examples: list[Example] = []
    for number, each in enumerate([each for each in texts if each][:EXAMPLES_MAX], 1):
        steps -= len(each) // BYTES_READ_PER_STEP
        if steps <= 0:
            examples.append(Example(member, number, "too expensive to validate"))
            continue
        try:
            value = json.loads(each)
        except json.JSONDecodeError as error:
            message = f"not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}"
            examples.append(Example(member, number, message))
            continue
        except (ValueError, RecursionError):
            examples.append(Example(member, number, "too deeply nested or too large"))
            continue
        if schema is None:
            examples.append(Example(member, number, "no usable schema to validate against"))
            continue
        judged = schema.judge(value, min(steps, EXPLAINED_STEPS))
        steps -= judged.steps
        if judged.is_valid is None:
            examples.append(Example(member, number, "too expensive to validate"))
            continue
        violations = judged.violations
        shown = tuple(violations[:VIOLATIONS_MAX])
        examples.append(Example(member, number, "", shown, len(violations) - len(shown)))
    return examples, steps


def refuse_constant(word: str) -> Any:
    """For `json.loads`: raise ValueError for NaN and infinities, which JSON does not have."""
    raise ValueError(f"{word} is not a JSON number")


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: the object. Raises ValueError if a member occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the member {twice[:80]!r} occurs twice in one object")
    return members
