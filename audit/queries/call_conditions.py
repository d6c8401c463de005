"""The conditions of a call query as SQL, each with its own parameters.

What the definitions of tools say is looked up when the conditions are made.

Values are parameters, never text. A condition on a value that a call does not have is FALSE, not
NULL, so that NOT matches all other calls. `{{call_walk}}` also has the conditions that an index
serves.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from audit import sql
from audit.queries.call_filter import (
    AMOUNT_SCALE,
    OPEN,
    UNPRICED,
    AllOf,
    AnyOf,
    Bounds,
    CallFilter,
    Condition,
    Contains,
    Has,
    Not,
    Text,
)
from audit.queries.dimensions import DIMENSIONS
from audit.queries.filter_names import FILTER_NAMES
from audit.queries.hints import hinting
from audit.queries.price_lists import prices_held
from tools_registry.annotations import HINTS

_TEXTS = {
    "tool": "tool_name",
    "version": "tool_version",
    "error": "error_type",
    "code": "error_code",
    "trace": "trace_id",
    "run": "run_id",
    "call": "call_id",
    "ingestion": "ingestion_run_id",
    "case": "case_id",
    "workflow": "workflow_id",
    "document": "document_id",
    "collection": "collection_id",
    "producer": "producer_id",
    **{FILTER_NAMES[name].field: column for name, column in DIMENSIONS.items()},
    "caller": sql.PARTS["caller_of_call"],
}
"""The column of each text filter, or what computes its value."""
_TOKENS = "prompt_tokens::numeric + completion_tokens"
"""A numeric: executors may send any numbers, and a sum of bigints would overflow."""
_NUMBERS = {"duration": "duration_us", "tokens": _TOKENS, "upstream": "upstream_status"}
_AMOUNT_UNITS = f"1{'0' * AMOUNT_SCALE}::numeric"
_OVERDUE, _CRASHED = sql.PARTS["call_is_overdue"], sql.PARTS["call_is_crashed"]
_STATES = {
    "conflict": "pair_conflict",
    "retry": "attempt > 1",
    "orphan": "start_batch_id IS NULL",
    "over-time": "duration_us > timeouts_ms::numeric * 1000",
    "over-budget": f"{_TOKENS} > budget_tokens",
    "overdue": f"state = 'open' AND {_OVERDUE}",
    "crashed": f"state = 'open' AND {_CRASHED}",
    "unapproved": sql.PARTS["call_is_unapproved"],
    "running": f"state = 'open' AND NOT {_OVERDUE} AND NOT {_CRASHED}",
}
_WALKED = {"since", "until", "tool", "trace", "run", "call"}
"""Members of a filter that `{{call_walk}}` already checks."""
_SEARCHED = ("tool_name", "error_type", "error_code")
"""Columns that free text is searched in; the message too, if the reader may see it."""


@dataclass
class Conditions:
    """The conditions of a filter on each call of a walk: SQL and its parameters."""

    wanted: CallFilter
    text: str = field(init=False)
    parameters: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        terms = [each for each in self.wanted.terms if each.member not in _WALKED]
        self.text = self._all((*terms, *self.wanted.others))

    def _sql(self, condition: Condition) -> str:
        match condition:
            case Has(member, value):
                return f"coalesce({self._has(member, value)}, FALSE)"
            case Contains(text):
                return self._contains(text)
            case Not(of):
                return f"NOT {self._sql(of)}"
            case AllOf(of):
                return self._all(of)
            case AnyOf(of):
                return f"({' OR '.join(self._sql(each) for each in of)})"
            case _:
                raise TypeError("payloads are not in the index")

    def _all(self, conditions: tuple[Condition, ...]) -> str:
        """Join conditions with AND.

        A code and a path side by side must be of one violation, a decision and a decider of one
        decision, a label and an assignee of one note.
        """
        clauses = []
        broken = _together(conditions, {"violation", "path"})
        if broken:
            clauses.append(self._violation(broken.get("violation"), broken.get("path")))
        decided = _together(conditions, {"decision", "by"})
        if decided:
            clauses.append(self._decision(decided.get("decision"), decided.get("by")))
        noted = _together(conditions, {"label", "assignee"})
        if noted:
            clauses.append(self._note(noted.get("label"), noted.get("assignee")))
        clauses += [
            self._sql(each)
            for each in conditions
            if not (isinstance(each, Has) and each.member in broken | decided | noted)
        ]
        return f"({' AND '.join(clauses) or 'TRUE'})"

    def _has(self, member: str, value: Any) -> str:
        match member:
            case "since":  # these two only in a negation, as instants: see `audit.queries.apart`
                return f"started_at >= {self._parameter(value)}"
            case "until":
                return f"started_at < {self._parameter(value)}"
            case "state" if value == "open":
                return f"state = ANY({self._parameter(list(OPEN))}::text[])"
            case "state":
                return f"state = {self._parameter(value)}"
            case "condition" if value in HINTS:
                return self._hint(value)
            case "condition":
                return _STATES[value]
            case "cache":
                return f"cache_hit = {self._parameter(value == 'hit')}"
            case "violation":
                return self._violation(value, None)
            case "path":
                return self._violation(None, value)
            case "decision":
                return self._decision(value, None)
            case "by":
                return self._decision(None, value)
            case "label":
                return self._note(value, None)
            case "assignee":
                return self._note(None, value)
            case "cost":
                return self._costs(value)
            case _ if member in _NUMBERS:
                return self._within(_NUMBERS[member], value)
            case _:
                return self._text_is(_TEXTS[member], value)

    def _text_is(self, column: str, text: Text) -> str:
        value = self._parameter(text.value)
        if text.is_prefix:
            return f"({column} <> '' AND starts_with({column}, {value}))"
        return f"({column} = {value})"

    def _within(self, number: str, bounds: Bounds) -> str:
        clauses = []
        if bounds.low is not None:
            clauses.append(f"{number} >= {self._parameter(bounds.low)}")
        if bounds.high is not None:
            clauses.append(f"{number} <= {self._parameter(bounds.high)}")
        return f"({' AND '.join(clauses)})"

    def _costs(self, wanted: Bounds | Literal["none"]) -> str:
        held, text = prices_held(), "NULL::numeric"
        if held is not None:
            text = sql.PARTS["cost_of_call"]
            for name, value in held.parameters().items():
                text = text.replace(f"%({name})s", self._parameter(value))
        completed = "state IN ('ok', 'failed')"
        if wanted == UNPRICED:
            return f"({completed} AND {text} IS NULL)"
        assert isinstance(wanted, Bounds)
        return f"({completed} AND {self._within(f'{text} * {_AMOUNT_UNITS}', wanted)})"

    def _contains(self, text: str) -> str:
        columns = [*_SEARCHED, "error_message"] if self.wanted.sees_messages else _SEARCHED
        # The same collation on both sides, whatever the database's default is.
        sought = f'lower({self._parameter(text)}::text COLLATE "C")'
        clauses = (
            f'coalesce(strpos(lower({column} COLLATE "C"), {sought}) > 0, FALSE)'
            for column in columns
        )
        return f"({' OR '.join(clauses)})"

    def _violation(self, code: Text | None, path: Text | None) -> str:
        text = sql.PARTS["call_has_violation"]
        if self.wanted.is_about_unrun:
            text = f"({text} OR {sql.PARTS['call_has_wrong_argument']})"
        for name, value in (("violation", code), ("path", path)):
            whole = value.value if value and not value.is_prefix else None
            prefix = value.value if value and value.is_prefix else None
            text = text.replace(f"%({name})s", self._parameter(whole))
            text = text.replace(f"%({name}_prefix)s", self._parameter(prefix))
        return text

    def _hint(self, hint: str) -> str:
        text = sql.PARTS["call_has_hint"]
        for name, value in asdict(hinting(hint)).items():
            text = text.replace(f"%({name})s", self._parameter(value))
        return text

    def _decision(self, decision: str | None, by: Text | None) -> str:
        text = sql.PARTS["call_has_decision"].replace("%(decision)s", self._parameter(decision))
        whole = by.value if by and not by.is_prefix else None
        prefix = by.value if by and by.is_prefix else None
        text = text.replace("%(by)s", self._parameter(whole))
        return text.replace("%(by_prefix)s", self._parameter(prefix))

    def _note(self, label: Text | None, assignee: Text | None) -> str:
        named = [
            self._text_is(f"n.{column}", value)
            for column, value in (("label", label), ("assignee", assignee))
            if value is not None
        ]
        text = sql.PARTS["call_has_note"].replace(sql.NAMED, " AND ".join(named))
        return f"coalesce({text}, FALSE)"

    def _parameter(self, value: Any) -> str:
        name = f"c{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"


def without_walk(wanted: CallFilter) -> Conditions:
    """All conditions of a filter but its times, for statements that do not walk: on a `call`."""
    terms = [each for each in wanted.terms if each.member not in ("since", "until")]
    whole = AllOf((*terms, *wanted.others))
    return Conditions(CallFilter(others=(whole,), sees_messages=wanted.sees_messages))


def _together(conditions: tuple[Condition, ...], members: set[str]) -> dict[str, Any]:
    """The values of those conditions that are about one violation, decision or note, by member."""
    return {
        each.member: each.value
        for each in conditions
        if isinstance(each, Has) and each.member in members
    }
