"""The errors the SDK raises into user code, with the ADK's codes, statuses and texts.

Owns the classes only; when each is raised is documented where it is raised. Violations of
an output schema are `tooltrail.guard.ValidationError`, which is not one of these.
"""

# ruff: noqa: N818 — a class carries the name of its code, so that either finds the other.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


class TooltrailError(Exception):
    """What the errors here share; catch it to catch them all.

    `code` is stable and the same text as `name`; `status` is the HTTP status that fits;
    `fatal` says that no retry can help, the program itself is wrong. The original error, if
    there was one, is `__cause__`. Prints as `NAME [CODE]: message`.
    """

    code: ClassVar[str]
    status: ClassVar[int] = 500
    fatal: ClassVar[bool] = False
    help: ClassVar[str | None] = None
    default_message: ClassVar[str]

    def __init__(self, message: str | None = None) -> None:
        self.message = self.default_message if message is None else message
        super().__init__(self.message)

    @property
    def name(self) -> str:
        """The same text as `code`, under the name JavaScript errors have it."""
        return self.code

    def __str__(self) -> str:
        return f"{self.name} [{self.code}]: {self.message}"


class InvalidInitialToolValue(TooltrailError, TypeError):
    """A `Tool` was given a missing, unknown or unusable member; the cause names each."""

    code = "E_INVALID_INITIAL_TOOL_VALUE"
    fatal = True
    default_message = "Attempted to initialize a tool with an invalid value."


class InvalidToolArgs(TooltrailError):
    """The arguments of a call break the tool's input schema; the cause lists each place."""

    code = "E_INVALID_TOOL_ARGS"
    status = 422
    default_message = "The arguments supplied to the tool failed input schema validation."


class ToolDownstreamError(TooltrailError):
    """The tool's handler raised; the cause is what it raised."""

    code = "E_TOOL_DOWNSTREAM_ERROR"
    default_message = "The tool handler threw an error during execution."


class ToolAlreadyRegistered(TooltrailError):
    """The name is taken in this registry."""

    code = "E_TOOL_ALREADY_REGISTERED"
    status = 409
    fatal = True
    default_message = (
        "A tool with this name is already registered. Pass overwrite: true to replace it."
    )


class ToolNameTaken(ToolAlreadyRegistered):
    """The server's registry has another contract of this name, and `on_collision` is "throw".

    `diff` is what the registry says differs between its current version and this one: `callers`
    and `consumers` ("compatible", "breaking", "unknown") and `changes`. Raised only by a trail
    with `register="strict"`.
    """

    code = "E_TOOL_NAME_TAKEN"

    def __init__(self, message: str, diff: Mapping[str, Any]) -> None:
        self.diff = diff
        super().__init__(message)


class ToolContractRefused(TooltrailError):
    """The server's registry cannot take this tool: its schemas or another member are unusable.

    The message says which, and why. Raised only by a trail with `register="strict"`.
    """

    code = "E_TOOL_CONTRACT_REFUSED"
    status = 422
    fatal = True
    default_message = "The registry does not take this tool."


class InvalidInitialToolCallValue(TooltrailError, TypeError):
    """A tool call record was given a missing, unknown or unusable member."""

    code = "E_INVALID_INITIAL_TOOL_CALL_VALUE"
    fatal = True
    default_message = "Attempted to initialize a tool call with an invalid value."


class InvalidInitialRegistryValue(TooltrailError, TypeError):
    """A `Registry` was given something other than a plain mapping."""

    code = "E_INVALID_INITIAL_REGISTRY_VALUE"
    fatal = True
    default_message = "Attempted to initialize a registry with a defined non-object value."


class NotASpoolReader(TooltrailError, TypeError):
    """An artifact was given something that cannot be read line by line."""

    code = "E_NOT_A_SPOOL_READER"
    fatal = True
    default_message = "The provided value does not implement the SpoolReader interface."


class LlmExecutionAlreadySignalled(TooltrailError):
    """An execution context was acknowledged or rejected a second time."""

    code = "E_LLM_EXECUTION_ALREADY_SIGNALLED"
    fatal = True
    default_message = (
        "ack() or nack() was called on an DispatchContext that has already been signalled."
    )


@dataclass(frozen=True, slots=True)
class ValidationDetail:
    """One place where a value breaks what was asked of it.

    `path` leads to it from the root; `type` names the broken rule (a JSON Schema keyword or
    a pydantic error type); `context` holds that rule's own words, such as a limit.
    """

    message: str
    path: tuple[str | int, ...] = ()
    type: str = "invalid"
    context: dict[str, Any] = field(default_factory=dict)


class ValidationException(TooltrailError, ValueError):
    """Every place where a value breaks a schema: the cause of the `E_INVALID_…` errors.

    Its message joins those of `details` with " and ".
    """

    code = "VALIDATION_EXCEPTION"
    status = 422

    def __init__(self, details: Sequence[ValidationDetail]) -> None:
        self.details = tuple(details)
        super().__init__(" and ".join(detail.message for detail in self.details))
