"""A tool: its definition, the validation of its arguments and its execution.

Owns `Tool`. `tooltrail.trail` ships what was executed, `tooltrail.guard` checks the output. The
verdict of a guarded handler is in the end event.
"""

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from time import perf_counter_ns
from typing import Any, Final, Literal, Protocol, Self, cast, get_args

from typing_extensions import TypeIs

from tooltrail.errors import (
    InvalidInitialRegistryValue,
    InvalidInitialToolValue,
    InvalidToolArgs,
    ToolDownstreamError,
    ValidationDetail,
    ValidationException,
)
from tooltrail.events import (
    VIOLATIONS_MAX,
    AdkToolExecutionEnd,
    AdkToolExecutionStart,
    GuardedToolExecutionEnd,
    GuardReport,
)
from tooltrail.guard import GuardOutcome, unwrap
from tooltrail.tools.arguments import Arguments, read_input_schema
from tooltrail.tools.artifacts import SpooledArtifact, is_artifact_class
from tooltrail.tools.canonical import compute_call_id
from tooltrail.tools.functions import name_of, read_function
from tooltrail.tools.members import MISSING, MemberProblems
from tooltrail.tools.meta import Registry
from tooltrail.tools.refusals import violations_of

OnCollision = Literal["throw", "replace", "keep"]
ON_COLLISION: Final[tuple[OnCollision, ...]] = get_args(OnCollision)


class ExecutionContext(Protocol):
    """The context that a tool runs in: it has the turn's id and receives starts and ends.

    If a context has a method `bind_tool(tool)`, it gets each tool that is going to run in it.
    """

    @property
    def id(self) -> str:
        """The turn's id; `turn_id` in the events."""

    def emit_tool_execution_start(self, event: AdkToolExecutionStart, /) -> object:
        """Called before the handler runs."""

    def emit_tool_execution_end(self, event: AdkToolExecutionEnd, /) -> object:
        """Called after the handler has ended."""


Handler = Callable[[Any, Any, Registry], Any]
"""`handler(args, ctx, meta)`, sync or async: validated arguments, the context, the tool's meta."""


class Tool:
    """A callable tool: its name, description, input schema and handler. Read-only.

    - `input_schema`: a JSON Schema of type object, or a pydantic model (see
      `tooltrail.tools.arguments`).
    - `artifact_constructor`: a function without arguments that returns the artifact class for
      results. It is called once, here, to check it.
    - `ephemeral`: the tool is for one turn only.
    - `trusted`: the author vouches for the results; the host decides what that means.
    - `on_collision`: what `ToolRegistry.merge` does if the name is taken.

    None for an optional member means that it is not given. Raises InvalidInitialToolValue; its
    cause names every member that is missing, unknown or invalid. Source: the ADK's `Tool`.
    """

    __slots__ = (
        "__weakref__",
        "_arguments",
        "_artifact_constructor",
        "_description",
        "_ephemeral",
        "_guard",
        "_handler",
        "_input_schema",
        "_meta",
        "_name",
        "_on_collision",
        "_trusted",
    )

    def __init__(
        self,
        *,
        name: str = MISSING,
        description: str = MISSING,
        input_schema: Any = MISSING,
        handler: Handler = MISSING,
        artifact_constructor: Callable[[], type[SpooledArtifact]] | None = None,
        meta: Mapping[str, Any] | None = None,
        ephemeral: bool | None = None,
        trusted: bool | None = None,
        on_collision: OnCollision | None = None,
        **unknown: Any,
    ) -> None:
        problems = _ToolProblems(InvalidInitialToolValue)
        for member in unknown:
            problems.add(member, "is not a member of a tool", "unknown")
        self._name = problems.text("name", name)
        self._description = problems.text("description", description)
        self._arguments = problems.input_schema(input_schema)
        self._input_schema = input_schema
        if not callable(handler):
            problems.add("handler", "must be callable")
        self._handler, self._guard = unwrap(handler)
        problems.artifact_constructor(artifact_constructor)
        self._artifact_constructor = artifact_constructor
        self._meta = problems.meta(meta)
        self._ephemeral = problems.flag("ephemeral", ephemeral)
        self._trusted = problems.flag("trusted", trusted)
        self._on_collision: OnCollision = "throw" if on_collision is None else on_collision
        if self._on_collision not in ON_COLLISION:
            problems.add("on_collision", f"must be one of {', '.join(ON_COLLISION)}")
        problems.raise_any()

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        **members: Any,
    ) -> Self:
        """Make a tool from a sync or async function, with its hints and docstring as schema.

        Parameters become members; those without default are required. Their descriptions come
        from the docstring (Google, NumPy or Sphinx style) or from `Annotated[…, Field(…)]`. The
        tool's description is the docstring's text before its sections. The handler calls `fn`
        with the validated values. `members` are those of `Tool`. Raises InvalidInitialToolValue,
        also if there is neither docstring nor description, or if a parameter has no schema.
        """
        plain, guard = unwrap(fn)
        try:
            function = read_function(plain)
        except (TypeError, ValueError, NameError) as error:
            detail = ValidationDetail(f'"input_schema" {error}', ("input_schema",))
            raise InvalidInitialToolValue from ValidationException([detail])

        def handler(args: Any, ctx: Any, meta: Registry) -> Any:
            return function.call(args)

        return cls(
            name=name_of(fn) if name is None else name,
            description=function.description if description is None else description,
            input_schema=function.model,
            handler=handler if guard is None else guard.wrap(handler),
            **members,
        )

    @property
    def name(self) -> str:
        """The name by which models call it."""
        return self._name

    @property
    def description(self) -> str:
        """What it does, as models read it."""
        return self._description

    @property
    def input_schema(self) -> Any:
        """The schema as given: JSON Schema or a pydantic type."""
        return self._input_schema

    @property
    def output_schema(self) -> Any:
        """The output schema of its guarded handler (`tooltrail.guard.guard`); None if unguarded."""
        return None if self._guard is None else self._guard.schema

    @property
    def artifact_constructor(self) -> Callable[[], type[SpooledArtifact]] | None:
        """The function that returns the artifact class for results; None: plain text."""
        return self._artifact_constructor

    @property
    def meta(self) -> Registry:
        """Values that the author attached. The handler gets the same registry."""
        return self._meta

    @property
    def ephemeral(self) -> bool:
        """Whether it is for one turn only."""
        return self._ephemeral

    @property
    def trusted(self) -> bool:
        """Whether its author vouches for its results."""
        return self._trusted

    @property
    def on_collision(self) -> OnCollision:
        """What `ToolRegistry.merge` does if its name is taken."""
        return self._on_collision

    @staticmethod
    def is_tool(value: object) -> TypeIs["Tool"]:
        """Whether the value is a Tool. A mapping of the same shape is not."""
        return isinstance(value, Tool)

    async def validate(self, args: Any) -> Any:
        """Validate arguments and fill in defaults. With a pydantic schema, return an instance.

        Nothing is converted: "10" is not a number. Raises InvalidToolArgs; its cause, a
        ValidationException, lists every violation.
        """
        try:
            return self._arguments.validate(args)
        except ValidationException as error:
            raise InvalidToolArgs from error

    def executor(self, ctx: ExecutionContext) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """Bind the tool to a context: returns an async function from arguments to the result.

        That function works in this order: (1) it computes the call id of the raw arguments,
        (2) validates them, (3) emits the start event, (4) runs the handler, (5) emits the end
        event, (6) raises ToolDownstreamError from what the handler raised.
        Errors in 1 (TypeError), 2 (InvalidToolArgs) and 3 are raised unchanged, and no further
        event is emitted. A cancellation is raised unchanged after the end event.

        A context with a method `emit_tool_call_decision` gets the refused arguments of 2 first, as
        a mapping with members of `ToolCallDecision`. What that method raises is ignored.
        """

        if (bind := getattr(ctx, "bind_tool", None)) is not None:
            bind(self)

        async def execute(args: Any) -> Any:
            call_id = compute_call_id(self._name, args)
            try:
                validated = await self.validate(args)
            except InvalidToolArgs as error:
                self._report_refusal(ctx, args, call_id, error)
                raise
            called = {"tool_name": self._name, "turn_id": str(ctx.id), "call_id": call_id}
            started_at, started_ns = datetime.now(UTC), perf_counter_ns()
            verdict: GuardOutcome | None = None
            returned: Any = None

            def end(is_error: bool) -> AdkToolExecutionEnd:
                # Not the wall clock: if it was set back meanwhile, the end would precede the start.
                duration_ms = (perf_counter_ns() - started_ns) / 1e6
                members = {
                    **called,
                    "started_at": started_at,
                    "ended_at": started_at + timedelta(milliseconds=duration_ms),
                    "duration_ms": duration_ms,
                    "is_error": is_error,
                }
                if verdict is None:
                    return AdkToolExecutionEnd.model_validate(members)
                return GuardedToolExecutionEnd.model_validate(
                    members | {"guard": _report(verdict, returned)}
                )

            ctx.emit_tool_execution_start(
                AdkToolExecutionStart(
                    **called, args=self._arguments.dump(validated), started_at=started_at
                )
            )
            try:
                result = self._handler(validated, ctx, self._meta)
                if isawaitable(result):
                    result = await result
                if self._guard is not None:
                    returned = result
                    verdict = self._guard.enforce(result)
                    if verdict.error is not None:
                        raise verdict.error
                    result = verdict.data
                # Inside the try, as in the ADK: if the context rejects the end, the call fails.
                ctx.emit_tool_execution_end(end(is_error=False))
                return result
            except Exception as error:
                ctx.emit_tool_execution_end(end(is_error=True))
                raise ToolDownstreamError from error
            except BaseException:
                ctx.emit_tool_execution_end(end(is_error=True))
                raise

        return execute

    def _report_refusal(
        self, ctx: ExecutionContext, args: Any, call_id: str, error: InvalidToolArgs
    ) -> None:
        report = getattr(ctx, "emit_tool_call_decision", None)
        if report is None:  # the ADK's contexts have none
            return
        with suppress(Exception):
            report(
                {
                    "tool_name": self._name,
                    "turn_id": str(ctx.id),
                    "call_id": call_id,
                    "decision": "rejectedArguments",
                    "args": args,
                    "violations": violations_of(error.__cause__),
                }
            )

    def describe(self) -> dict[str, Any]:
        """A plain snapshot: `name`, `description`, and `inputSchema` as JSON Schema."""
        return {
            "name": self._name,
            "description": self._description,
            "inputSchema": deepcopy(self._arguments.json_schema),
        }

    def to_openai(self) -> dict[str, Any]:
        """The definition for OpenAI's chat completions, an entry of `tools`."""
        return {
            "type": "function",
            "function": {
                "name": self._name,
                "description": self._description,
                "parameters": deepcopy(self._arguments.json_schema),
            },
        }

    def to_anthropic(self) -> dict[str, Any]:
        """The definition for Anthropic's messages, an entry of `tools`."""
        return {
            "name": self._name,
            "description": self._description,
            "input_schema": deepcopy(self._arguments.json_schema),
        }

    def to_mcp(self) -> dict[str, Any]:
        """The definition for the `tools/list` of an MCP server."""
        return self.describe()

    def __repr__(self) -> str:
        return f"Tool(name={self._name!r})"


def _report(verdict: GuardOutcome, returned: Any) -> GuardReport:
    members: dict[str, Any] = {
        "strategy": verdict.strategy,
        "outcome": verdict.outcome,
        "violations": verdict.violations[:VIOLATIONS_MAX],
    }
    if verdict.outcome != "passed":  # the caller gets something else
        members["received"] = returned
    return GuardReport(**members)


class _ToolProblems(MemberProblems):
    """The checks that only a tool's members need."""

    def input_schema(self, schema: Any) -> Arguments:
        if self.is_given("input_schema", schema):
            try:
                return read_input_schema(schema)
            except ValueError as error:
                self.add("input_schema", f"is no input schema: {error}")
        return cast("Arguments", None)  # raise_any raises later

    def artifact_constructor(self, resolver: Any) -> None:
        if resolver is None:
            return
        try:
            resolved = resolver()
        except Exception as error:  # the author's code may raise anything
            self.add("artifact_constructor", f"could not be resolved: {error}")
        else:
            if not is_artifact_class(resolved):
                self.add("artifact_constructor", "must return an artifact class")

    def meta(self, meta: Any) -> Registry:
        try:
            return Registry(meta)
        except InvalidInitialRegistryValue:
            self.add("meta", "must be a mapping")
            return Registry()
