"""The options of a guard, its results, and the error it raises.

Owns the names of the options, their defaults and their validation. `tooltrail.guard.guarding`
applies them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, Self, get_args

from pydantic.alias_generators import to_snake

from tooltrail.guard.violations import Violation

FailureStrategy = Literal["throw", "fallback", "error-result", "coerce-and-warn", "strip-extra"]
Outcome = Literal["passed", "failed", "coerced", "stripped", "fallback", "error-result"]

UNSET: Final[Any] = type("Unset", (), {"__repr__": lambda self: "UNSET"})()
"""Marks an option that was not given, where None is a value like any other."""


@dataclass(frozen=True, slots=True)
class CoercionConfig:
    """The conversions that `coerce-and-warn` may make. If given, only those set to True."""

    string_to_number: bool = False
    string_to_boolean: bool = False
    string_to_json: bool = False
    number_to_string: bool = False
    null_to_default: bool = False

    @classmethod
    def of(cls, given: "CoercionConfig | Mapping[str, Any] | None") -> "CoercionConfig":
        """Read toggles from a mapping (snake or camel case). None gives the documented four.

        Raises TypeError for an unknown toggle.
        """
        if isinstance(given, CoercionConfig):
            return given
        if given is None:
            return EVERY_CONVERSION
        return cls(**{_name(cls, key): bool(value) for key, value in given.items()})


EVERY_CONVERSION: Final = CoercionConfig(
    string_to_number=True, string_to_boolean=True, string_to_json=True, number_to_string=True
)


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """What a guard does with output that violates its schema, and which hooks it calls.

    - `on_invalid`: one of the five strategies.
    - `fallback_value`, `coercion_fallback`: returned by `fallback`, and by `coerce-and-warn` if
      coercion is not enough.
    - `coercion`: the conversions that `coerce-and-warn` may make.
    - `field_strategies`, `field_fallbacks`: strategies and fallbacks by path, such as
      `$.items[*].name`.
    - `json_schema_validator`: replaces the validation by JSON Schema; gets schema and value.
    - `tool_name`: in error messages.
    - `tool_options`: options per tool, used only by `guard_tools`.
    - `on_validation_pass`, `on_validation_fail`, `on_coercion`: hooks; they get the data, the
      violations, and path, original and converted value.
    - `assert_formats`: validate JSON Schema's `format` instead of treating it as a comment.

    Raises ValueError for an unknown strategy, TypeError for an unknown conversion.
    """

    on_invalid: FailureStrategy = "throw"
    fallback_value: Any = UNSET
    coercion_fallback: Any = UNSET
    coercion: CoercionConfig | Mapping[str, Any] | None = None
    field_strategies: Mapping[str, FailureStrategy] = field(default_factory=dict)
    field_fallbacks: Mapping[str, Any] = field(default_factory=dict)
    json_schema_validator: Callable[[Any, Any], bool] | None = None
    tool_name: str | None = None
    tool_options: Mapping[str, "GuardOptions | Mapping[str, Any]"] = field(default_factory=dict)
    on_validation_pass: Callable[[Any], object] | None = None
    on_validation_fail: Callable[[list[Violation]], object] | None = None
    on_coercion: Callable[[str, Any, Any], object] | None = None
    assert_formats: bool = False

    def __post_init__(self) -> None:
        for strategy in (self.on_invalid, *self.field_strategies.values()):
            if strategy not in get_args(FailureStrategy):
                known = ", ".join(get_args(FailureStrategy))
                raise ValueError(f"unknown strategy {strategy!r}; use one of {known}")
        object.__setattr__(self, "coercion", CoercionConfig.of(self.coercion))

    @property
    def conversions(self) -> CoercionConfig:
        """The conversions that `coerce-and-warn` may make."""
        return CoercionConfig.of(self.coercion)

    @classmethod
    def of(cls, given: "Self | Mapping[str, Any] | None", **more: Any) -> Self:
        """Read options from a mapping (snake or camel case); keywords take precedence.

        Raises TypeError for an unknown option, ValueError for an unknown strategy.
        """
        if isinstance(given, cls):
            return given.updated(more) if more else given
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"guard options must be a mapping, not {type(given).__name__}")
        return cls().updated({**(given or {}), **more}) if given or more else cls()

    def updated(self, changes: Mapping[str, Any]) -> Self:
        """The same options with some replaced. None restores a default, except for fallbacks."""
        named = {_name(type(self), key): value for key, value in changes.items()}
        keep_none = ("fallback_value", "coercion_fallback")
        defaults = {
            key: getattr(DEFAULTS, key)
            for key, value in named.items()
            if value is None and key not in keep_none
        }
        return replace(self, **{**named, **defaults})

    def given(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) is not getattr(DEFAULTS, each.name)
        }


def _name(options: type, key: str) -> str:
    name = to_snake(key)
    if name not in {each.name for each in fields(options)}:
        raise TypeError(f"unknown option {key!r}")
    return name


DEFAULTS: Final = GuardOptions()


class ValidationError(ValueError):
    """Output violates its schema. `violations` lists the places, `tool_name` names the tool.

    Its text lists every violation.
    """

    def __init__(self, violations: Sequence[Violation], tool_name: str | None = None) -> None:
        self.violations = list(violations)
        self.tool_name = tool_name
        tool = f' for tool "{tool_name}"' if tool_name else ""
        lines = [f"Validation failed{tool}: {len(self.violations)} violation(s)"]
        lines += [f"  [{each.severity}] {each.path}: {each.message}" for each in self.violations]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type, tuple[list[Violation], str | None]]:
        return type(self), (self.violations, self.tool_name)


@dataclass(slots=True)
class ValidationResult:
    """The result of `validate`: the data and its warnings, or the violations."""

    success: bool
    data: Any = None
    warnings: list[Violation] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


@dataclass(slots=True)
class GuardOutcome:
    """What the guard did with one output, for code that records it.

    Exactly one of `data` and `error` is valid: if there is an `error`, the caller must raise it.
    `violations` holds the errors and, as warnings, each repair.
    """

    data: Any
    error: Exception | None
    strategy: FailureStrategy
    outcome: Outcome
    violations: list[Violation]
