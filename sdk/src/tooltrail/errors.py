"""The errors that the SDK raises into user code, with the ADK's codes, statuses and texts.

Owns the classes only; each function documents what it raises. A violation of an output schema
raises `tooltrail.guard.ValidationError`, which is not one of these.
"""

# ruff: noqa: N818 — a class has the name of its error code, so that one can be found by the other.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


class TooltrailError(Exception):
    """The base class of these errors.

    `code` is stable, and `name` is the same text. `status` is the matching HTTP status.
    `fatal` is True if no retry can help because the program itself is wrong. The original
    error, if there is one, is `__cause__`. `str()` gives `NAME [CODE]: message`.
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
        """The same text as `code`. JavaScript errors have it under this name."""
        return self.code

    def __str__(self) -> str:
        return f"{self.name} [{self.code}]: {self.message}"


class InvalidInitialToolValue(TooltrailError, TypeError):
    """A `Tool` got a missing, unknown or invalid member. `__cause__` lists each of them."""

    code = "E_INVALID_INITIAL_TOOL_VALUE"
    fatal = True
    default_message = "Attempted to initialize a tool with an invalid value."


class InvalidToolArgs(TooltrailError):
    """The arguments of a call violate the tool's input schema. `__cause__` lists each place."""

    code = "E_INVALID_TOOL_ARGS"
    status = 422
    default_message = "The arguments supplied to the tool failed input schema validation."


class ToolDownstreamError(TooltrailError):
    """The tool's handler raised. `__cause__` is the handler's exception."""

    code = "E_TOOL_DOWNSTREAM_ERROR"
    default_message = "The tool handler threw an error during execution."


class ToolAlreadyRegistered(TooltrailError):
    """This registry already has a tool with this name."""

    code = "E_TOOL_ALREADY_REGISTERED"
    status = 409
    fatal = True
    default_message = (
        "A tool with this name is already registered. Pass overwrite: true to replace it."
    )


class ToolNameTaken(ToolAlreadyRegistered):
    """The server's registry has another contract with this name, and `on_collision` is "throw".

    `diff` compares the registry's current version with this one. It has `callers` and
    `consumers` (each "compatible", "breaking" or "unknown") and `changes`. Raised only by a
    trail with `register="strict"`.
    """

    code = "E_TOOL_NAME_TAKEN"

    def __init__(self, message: str, diff: Mapping[str, Any]) -> None:
        self.diff = diff
        super().__init__(message)


class ToolContractRefused(TooltrailError):
    """The server's registry rejected this tool: a schema or another member is invalid.

    The message names the member and the reason. Raised only by a trail with
    `register="strict"`.
    """

    code = "E_TOOL_CONTRACT_REFUSED"
    status = 422
    fatal = True
    default_message = "The registry rejected this tool."


class InvalidInitialToolCallValue(TooltrailError, TypeError):
    """A tool call record got a missing, unknown or invalid member."""

    code = "E_INVALID_INITIAL_TOOL_CALL_VALUE"
    fatal = True
    default_message = "Attempted to initialize a tool call with an invalid value."


class InvalidInitialRegistryValue(TooltrailError, TypeError):
    """A `Registry` got something other than a plain mapping."""

    code = "E_INVALID_INITIAL_REGISTRY_VALUE"
    fatal = True
    default_message = "Attempted to initialize a registry with a defined non-object value."


class NotASpoolReader(TooltrailError, TypeError):
    """An artifact got an object that cannot be read line by line."""

    code = "E_NOT_A_SPOOL_READER"
    fatal = True
    default_message = "The provided value does not implement the SpoolReader interface."


class LlmExecutionAlreadySignalled(TooltrailError):
    """`ack()` or `nack()` was called a second time on an execution context."""

    code = "E_LLM_EXECUTION_ALREADY_SIGNALLED"
    fatal = True
    default_message = (
        "ack() or nack() was called on an DispatchContext that has already been signalled."
    )


@dataclass(frozen=True, slots=True)
class ValidationDetail:
    """One place where a value violates a schema.

    `path` leads to the place from the root. `type` names the broken rule: a JSON Schema keyword
    or a pydantic error type. `context` holds the rule's own data, such as a limit.
    """

    message: str
    path: tuple[str | int, ...] = ()
    type: str = "invalid"
    context: dict[str, Any] = field(default_factory=dict)


class ValidationException(TooltrailError, ValueError):
    """All places where a value violates a schema. It is the cause of the `E_INVALID_…` errors.

    Its message joins the messages of `details` with " and ".
    """

    code = "VALIDATION_EXCEPTION"
    status = 422

    def __init__(self, details: Sequence[ValidationDetail]) -> None:
        self.details = tuple(details)
        super().__init__(" and ".join(detail.message for detail in self.details))
