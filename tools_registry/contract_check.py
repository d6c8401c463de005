"""What is wrong with a contract as a person types it, and how pasted examples fare. Pure.

The rules are those executors are held to (`tools_registry.schemas`); examples are judged as the
guard judges outputs, so that what fits here fits there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jsonschema_rs
from pydantic import ValidationError
from tooltrail.guard import Violation
from tooltrail.guard.jsonschema import CompiledSchema
from tooltrail.guard.work import EXPLAINED_STEPS

from tools_registry.schemas import (
    DEPTH_MAX,
    SCHEMAS,
    ToolContract,
    check_schema,
    compile_for_judging,
)

PROBLEMS_MAX: Final = 10
"""Of one document, that are listed."""
EXAMPLES_MAX: Final = 20
VIOLATIONS_MAX: Final = 20
"""Of one example, that are listed."""
EXAMPLES_STEPS: Final = 200_000
"""For all examples of one schema: 0.1 s; of one of them `EXPLAINED_STEPS`."""

_SEPARATOR: Final = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_META: Final[Mapping[str, jsonschema_rs.Validator]] = {
    "draft-04": jsonschema_rs.Draft4Validator({"$ref": "http://json-schema.org/draft-04/schema#"}),
    "draft-06": jsonschema_rs.Draft6Validator({"$ref": "http://json-schema.org/draft-06/schema#"}),
    "draft-07": jsonschema_rs.Draft7Validator({"$ref": "http://json-schema.org/draft-07/schema#"}),
    "2019-09": jsonschema_rs.Draft201909Validator(
        {"$ref": "https://json-schema.org/draft/2019-09/schema"}
    ),
    "2020-12": jsonschema_rs.Draft202012Validator(
        {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a member of the contract."""

    member: str
    message: str
    pointer: str = ""
    """Where in its document, as a JSON pointer; '' for the whole or for none."""
    line: int = 0
    """Where its text breaks off; 0: it is JSON."""
    column: int = 0
    """Of that line, from 1."""
    is_warning: bool = False
    """It can be saved and published all the same."""


@dataclass(frozen=True, slots=True)
class Example:
    """A pasted value and what the schema finds in it."""

    member: str
    """The schema it was held against."""
    number: int
    problem: str
    """Why it cannot be judged; '' if it was."""
    violations: tuple[Violation, ...] = ()
    further: int = 0

    @property
    def fits(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problem and not self.violations


@dataclass(slots=True)
class Checked:
    """A contract that was typed; None unless it can be saved."""

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
    """Check what was typed: documents as text, the other members as they are.

    `examples` are texts by the schema they are for, several of them parted by lines of `---`.
    `known` are schemas in use: those the guard cannot judge by are warned of, new ones refused.
    """
    found = Checked()
    members = dict(typed)
    compiled: dict[str, CompiledSchema | None] = {}
    for member in (*SCHEMAS, "meta"):
        text = typed[member].strip()
        if not text:
            members[member] = {} if member == "meta" else None
            if member == "input_schema":
                found.problems.append(
                    Problem(member, 'is missing: {"type": "object"} takes anything')
                )
            continue
        document, problem = _read(member, text)
        if problem is not None:
            found.problems.append(problem)
            continue
        members[member] = document
        if member in SCHEMAS:
            problems = _schema_problems(member, document)
            if not problems:
                compiled[member], problems = _compiled(member, document, document in list(known))
            found.problems += problems
    for member in SCHEMAS:
        found.examples += _judged(member, examples.get(member, ""), compiled.get(member))
    if any(not problem.is_warning for problem in found.problems):
        return found
    try:
        found.contract = ToolContract.model_validate({**members, "name": name})
    except ValidationError as error:
        for each in error.errors(include_url=False, include_context=False):
            message = each["msg"].removeprefix("Value error, ")
            found.problems.append(Problem(str(each["loc"][0]), message))
    return found


def _read(member: str, text: str) -> tuple[Any, Problem | None]:
    try:
        document = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
    except json.JSONDecodeError as error:
        said = f"is no JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        return None, Problem(member, said, line=error.lineno, column=error.colno)
    except ValueError as error:  # also of a number with more digits than Python reads
        return None, Problem(member, f"is no JSON a contract can hold: {error}")
    except RecursionError:
        return None, Problem(member, f"is nested deeper than {DEPTH_MAX} levels")
    if not isinstance(document, dict):
        return None, Problem(member, "is no JSON object")
    return document, None


def _schema_problems(member: str, schema: dict[str, Any]) -> list[Problem]:
    try:
        check_schema(schema)
    except ValueError as error:
        return _by_metaschema(member, schema) or [Problem(member, str(error))]
    return []


def _by_metaschema(member: str, schema: dict[str, Any]) -> list[Problem]:
    """What the metaschema finds, each with its place."""
    declared = schema.get("$schema", "2020-12")
    meta = next((meta for name, meta in _META.items() if name in str(declared)), None)
    problems: list[Problem] = []
    try:
        for error in meta.iter_errors(schema) if meta else ():
            parts = (str(p).replace("~", "~0").replace("/", "~1") for p in error.instance_path)
            pointer = "".join(f"/{part}" for part in parts)
            problems.append(Problem(member, error.message[:300], pointer))
            if len(problems) == PROBLEMS_MAX:
                break
    except ValueError:  # a lone surrogate: check_schema has said so
        return []
    return problems


def _compiled(
    member: str, schema: dict[str, Any], is_known: bool
) -> tuple[CompiledSchema | None, list[Problem]]:
    try:
        return compile_for_judging(schema), []
    except ValueError as error:
        return None, [Problem(member, str(error), is_warning=is_known)]


def _judged(member: str, text: str, schema: CompiledSchema | None) -> list[Example]:
    texts = [each.strip() for each in _SEPARATOR.split(text)]
    found: list[Example] = []
    left = EXAMPLES_STEPS
    for number, each in enumerate([each for each in texts if each][:EXAMPLES_MAX], 1):
        try:
            value = json.loads(each)
        except json.JSONDecodeError as error:
            said = f"no JSON: {error.msg} in line {error.lineno}, column {error.colno}"
            found.append(Example(member, number, said))
            continue
        except (ValueError, RecursionError):
            found.append(Example(member, number, "too deep or too large to be read"))
            continue
        if schema is None:
            found.append(Example(member, number, "there is no usable schema to hold it against"))
            continue
        judged = schema.judge(value, min(left, EXPLAINED_STEPS))
        left -= judged.steps
        if judged.is_valid is None:
            found.append(Example(member, number, "takes too much work to judge"))
            continue
        violations = judged.violations
        shown = tuple(violations[:VIOLATIONS_MAX])
        found.append(Example(member, number, "", shown, len(violations) - len(shown)))
    return found


def refuse_constant(word: str) -> Any:
    """For `json.loads`: NaN and infinities, which JSON has no word for. Raises ValueError."""
    raise ValueError(f"{word} is no JSON number")


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object each of whose members occurs once. Raises ValueError."""
    members = dict(pairs)
    if len(members) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the member {twice[:80]!r} occurs twice in one object")
    return members
