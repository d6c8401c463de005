"""The guard itself: validates output, and handles invalid output as the options say.

Owns the strategies, the order of hooks and the wrapping of tools. Source of that order:
tool-output-guard 0.3.2. Options that it documents without effect do have an effect here.
"""

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from tooltrail.guard.coerce import Coercion, coerce
from tooltrail.guard.detect import detect_schema
from tooltrail.guard.fields import repair_fields
from tooltrail.guard.format import build_violation
from tooltrail.guard.jsonschema import CompiledSchema, compile_schema
from tooltrail.guard.models import ModelSchema, compile_model
from tooltrail.guard.nodes import Node
from tooltrail.guard.options import (
    UNSET,
    GuardOptions,
    GuardOutcome,
    Outcome,
    ValidationError,
    ValidationResult,
)
from tooltrail.guard.reading import copy_schema, read_schema
from tooltrail.guard.strip import strip
from tooltrail.guard.violations import Violation

type Tool = Callable[..., Any]
type Options = GuardOptions | Mapping[str, Any] | None

_log: Final = logging.getLogger("tooltrail.guard")


class Guard:
    """One schema with its options, compiled once, for any number of outputs.

    Raises TypeError if `schema` is not a schema, SchemaError if it cannot be used.
    """

    def __init__(self, schema: Any, options: GuardOptions) -> None:
        self.schema = schema
        self.options = options
        self._judge = _judge_for(schema, options)

    def validate(self, value: Any) -> ValidationResult:
        """Validate a value. Never raises for invalid data.

        Runs the hooks; what they raise is raised. `coerce-and-warn` and `strip-extra` return the
        repaired data, with the repairs as warnings. The other strategies only report violations.
        """
        outcome = self._run(value, only_repair=True)
        if isinstance(outcome.error, ValidationError):
            return ValidationResult(success=False, violations=outcome.error.violations)
        warnings = [each for each in outcome.violations if each.code == "COERCED"]
        return ValidationResult(success=True, data=outcome.data, warnings=warnings)

    def enforce(self, output: Any) -> GuardOutcome:
        """Apply the strategy to an output and return the outcome, without raising its error.

        Only what the hooks raise is raised.
        """
        return self._run(output, only_repair=False)

    def enforce_missing(self, violation: Violation) -> GuardOutcome:
        """Apply the strategy to an output that is missing. Nothing can be repaired in it."""
        return self._run(None, only_repair=False, absent=violation)

    def wrap(self, tool: Tool) -> Tool:
        """Wrap a tool so that its output is guarded. Sync tools stay sync.

        The wrapped tool raises ValidationError if its strategy is to throw, and ValueError if a
        strategy needs a fallback that is not given.
        """
        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def guarded_async(*args: Any, **kwargs: Any) -> Any:
                return self._released(await tool(*args, **kwargs))

            _guarded[guarded_async] = tool, self
            return guarded_async

        @functools.wraps(tool)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            output = tool(*args, **kwargs)
            if inspect.isawaitable(output):
                return self._awaited(output)
            return self._released(output)

        _guarded[guarded] = tool, self
        return guarded

    async def _awaited(self, output: Awaitable[Any]) -> Any:
        return self._released(await output)

    def _released(self, output: Any) -> Any:
        outcome = self.enforce(output)
        if outcome.error is not None:
            raise outcome.error
        return outcome.data

    def _run(
        self, output: Any, *, only_repair: bool, absent: Violation | None = None
    ) -> GuardOutcome:
        """Apply the options.

        1. `strip-extra` removes undeclared members. 2. Validate; run one of the two hooks.
        3. Repair the fields that have their own strategy, validate again. 4. Apply `on_invalid`
        to the remaining violations.
        """
        options, strategy = self.options, self.options.on_invalid
        data, warnings = output, list[Violation]()
        if strategy == "strip-extra" and absent is None:
            data, removed = strip(self._judge.root(), output)
            warnings = [_removed(path) for path in removed]
        violations = self._judge.violations(data) if absent is None else [absent]
        if not violations:
            if options.on_validation_pass is not None:
                options.on_validation_pass(data)
            return self._outcome(data, "stripped" if warnings else "passed", warnings)
        if options.on_validation_fail is not None:
            options.on_validation_fail(violations)
        if options.field_strategies and absent is None:
            try:
                repairs = repair_fields(
                    self._judge.root, data, violations, options, may_fall_back=not only_repair
                )
            except ValueError as missing:
                return self._failed(missing, violations)
            if repairs.whole is not None:
                strategy = repairs.whole
            elif repairs.coercions:
                data = repairs.data
                self._report(repairs.coercions)
                warnings += [coercion.as_violation() for coercion in repairs.coercions]
                violations = self._judge.violations(data)
                if not violations:
                    return self._outcome(data, repairs.outcome, warnings)
        if strategy == "coerce-and-warn":
            coercions: Sequence[Coercion] = ()
            if absent is None:
                data, coercions = coerce(self._judge.root(), data, options.conversions)
            self._report(coercions)
            warnings += [each.as_violation() for each in coercions]
            if coercions:
                violations = self._judge.violations(data)
                if not violations:
                    return self._outcome(data, "coerced", warnings)
            if options.coercion_fallback is not UNSET and not only_repair:
                fallback = options.coercion_fallback
                return self._outcome(fallback, "fallback", [*violations, *warnings])
        elif strategy == "fallback" and not only_repair:
            if options.fallback_value is UNSET:
                needed = 'fallback_value must be given when using the "fallback" strategy'
                return self._failed(ValueError(needed), violations)
            return self._outcome(options.fallback_value, "fallback", [*violations, *warnings])
        elif strategy == "error-result" and not only_repair:
            result = {
                "__error": True,
                "violations": [{"path": each.path, "message": each.message} for each in violations],
            }
            return self._outcome(result, "error-result", [*violations, *warnings])
        return self._failed(ValidationError(violations, options.tool_name), violations, warnings)

    def _report(self, coercions: Sequence[Coercion]) -> None:
        for each in coercions:
            if self.options.on_coercion is not None:
                self.options.on_coercion(each.path, each.original, each.coerced)
            else:
                _log.warning("[tool-output-guard] Coerced %s: %s", each.path, each.message)

    def _outcome(self, data: Any, outcome: Outcome, violations: list[Violation]) -> GuardOutcome:
        return GuardOutcome(data, None, self.options.on_invalid, outcome, violations)

    def _failed(
        self, error: Exception, violations: list[Violation], warnings: Sequence[Violation] = ()
    ) -> GuardOutcome:
        all_violations = [*violations, *warnings]
        return GuardOutcome(None, error, self.options.on_invalid, "failed", all_violations)


_guarded: Final[WeakKeyDictionary[Tool, tuple[Tool, Guard]]] = WeakKeyDictionary()


def unwrap(tool: Tool) -> tuple[Tool, Guard | None]:
    """Return the tool inside a guarded one and its guard; for any other tool, itself and None."""
    try:
        return _guarded.get(tool, (tool, None))
    except TypeError:  # not hashable or not weakly referable, so not one of our wrappers
        return tool, None


class _Judge:
    """Finds the violations of a value, for either kind of schema."""

    def __init__(self, schema: CompiledSchema | ModelSchema) -> None:
        self.violations = schema.violations
        self._schema = schema

    def root(self) -> Node:
        """The node used to coerce and strip."""
        if isinstance(self._schema, ModelSchema):
            return self._schema.json_schema.root
        return self._schema.root


class _CustomJudge:
    """Lets the user's own function decide whether a value fits a JSON Schema."""

    def __init__(self, schema: Any, is_valid: Callable[[Any, Any], bool]) -> None:
        self._schema = schema
        self._is_valid = is_valid

    def violations(self, value: Any) -> list[Violation]:
        if self._is_valid(self._schema, value):
            return []
        message = "Value was refused by the custom validator"
        return [build_violation("CONSTRAINT_VIOLATION", "$", message)]

    def root(self) -> Node:
        return read_schema(copy_schema(self._schema)).root


def _judge_for(schema: Any, options: GuardOptions) -> _Judge | _CustomJudge:
    if detect_schema(schema).type == "model":
        return _Judge(compile_model(schema))
    if options.json_schema_validator is not None:
        return _CustomJudge(schema, options.json_schema_validator)
    return _Judge(compile_schema(schema, assert_formats=options.assert_formats))


def _removed(path: str) -> Violation:
    name = path.rpartition(".")[2]
    message = f'Field "{name}" is not declared by the schema and was removed'
    return build_violation(
        code="UNKNOWN_FIELD",
        path=path,
        message=message,
        actual=name,
        expected="not present",
        severity="warning",
    )


def create_guard(schema: Any, options: Options = None, **more: Any) -> Guard:
    """Make a reusable guard for a schema. Options are a mapping, `GuardOptions` or keywords.

    Raises TypeError for an object that is not a schema or an unknown option, SchemaError for a
    schema that cannot be used, and ValueError for an unknown strategy.
    """
    return Guard(schema, GuardOptions.of(options, **more))


def guard(tool: Tool, schema: Any, options: Options = None, **more: Any) -> Tool:
    """Wrap a tool function so that its output fits a schema, or the strategy applies.

    Raises as `create_guard` does, before the tool ever runs.
    """
    return create_guard(schema, options, **more).wrap(tool)


def guard_tools(
    tools: Mapping[str, Tool],
    schemas: Mapping[str, Any],
    options: Options = None,
    **more: Any,
) -> dict[str, Tool]:
    """Guard every tool that has a schema. The others are returned unchanged.

    `tool_options` overrides options per tool. The tool's name is always the mapping's key.
    Raises as `create_guard` does, with the tool's name in the message.
    """
    shared = GuardOptions.of(options, **more)
    guarded: dict[str, Tool] = {}
    for name, tool in tools.items():
        schema = schemas.get(name)
        if schema is None or (isinstance(schema, bool | int | str) and not schema):
            guarded[name] = tool
            continue
        own = shared.tool_options.get(name) or {}
        changes = own.given() if isinstance(own, GuardOptions) else own
        try:
            settings = shared.updated({**changes, "tool_name": name})
            guarded[name] = Guard(schema, settings).wrap(tool)
        except (TypeError, ValueError) as problem:
            raise type(problem)(f'tool "{name}": {problem}') from problem
    return guarded


def enforce(output: Any, schema: Any, options: Options = None, **more: Any) -> GuardOutcome:
    """Apply a schema and a strategy to one output and return the outcome; never raise its error.

    For many outputs keep a `create_guard(…)` and call its `enforce`. Raises as `create_guard`
    does.
    """
    return create_guard(schema, options, **more).enforce(output)


def validate(output: Any, schema: Any, options: Options = None, **more: Any) -> ValidationResult:
    """Validate any value against any schema. Never raises for invalid data; see `Guard.validate`.

    Raises as `create_guard` does.
    """
    if options is None and not more:
        return validate_output(output, schema)
    return create_guard(schema, options, **more).validate(output)


def validate_output(output: Any, schema: Any) -> ValidationResult:
    """Validate any value against any schema, without options. Raises as `create_guard` does."""
    if detect_schema(schema).type == "json-schema":
        violations = compile_schema(schema).violations(output)
    else:
        violations = compile_model(schema).violations(output)
    if violations:
        return ValidationResult(success=False, violations=violations)
    return ValidationResult(success=True, data=output)
