"""A tool: its definition, the check of its arguments and its execution.

Owns `Tool`. Shipping what was executed is `tooltrail.trail`'s, judging what came out
`tooltrail.guard`'s: a guarded handler's verdict goes into the end event.
"""

from collections.abc import Callable, Coroutine, Mapping
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

OnCollision = Literal["throw", "replace", "keep"]
ON_COLLISION: Final[tuple[OnCollision, ...]] = get_args(OnCollision)


class ExecutionContext(Protocol):
    """What a tool runs in: the turn's id, and who wants to hear of starts and ends.

    A context with a method `bind_tool(tool)` is told as well which tools are to run in it.
    """

    @property
    def id(self) -> str:
        """The turn's id, `turn_id` in the events."""

    def emit_tool_execution_start(self, event: AdkToolExecutionStart, /) -> object:
        """Told before the handler runs."""

    def emit_tool_execution_end(self, event: AdkToolExecutionEnd, /) -> object:
        """Told after the handler ended."""


Handler = Callable[[Any, Any, Registry], Any]
"""`handler(args, ctx, meta)`, sync or async: validated arguments, the context, the tool's meta."""


class Tool:
    """A callable tool: name, description, input schema and what it does. Read-only.

    `input_schema` is a JSON Schema of type object or a pydantic model (see
    `tooltrail.tools.arguments`). `artifact_constructor` is a function without arguments that
    returns the artifact class to wrap results in; it is called once, here. `ephemeral` tools
    live one turn, `trusted` is for the host to act on, `on_collision` speaks in
    `ToolRegistry.merge`. None for an optional member means not given.

    Raises InvalidInitialToolValue, its cause naming every member that is missing, unknown or
    unusable. Source: the ADK's `Tool`.
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
        """Make a tool of a sync or async function, its schema read off hints and docstring.

        Parameters become members, those without default required; their descriptions come
        from the docstring (Google, NumPy or Sphinx style) or `Annotated[…, Field(…)]`, the
        tool's from what the docstring says before. The handler calls `fn` with the
        validated values. `members` are those of `Tool`. Raises InvalidInitialToolValue, also
        where there is neither docstring nor description or a parameter cannot be described.
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
        """What models call it by."""
        return self._name

    @property
    def description(self) -> str:
        """What models are told it does."""
        return self._description

    @property
    def input_schema(self) -> Any:
        """The schema as it was given: JSON Schema or a pydantic type."""
        return self._input_schema

    @property
    def output_schema(self) -> Any:
        """The schema its handler is guarded by (`tooltrail.guard.guard`), None if by none."""
        return None if self._guard is None else self._guard.schema

    @property
    def artifact_constructor(self) -> Callable[[], type[SpooledArtifact]] | None:
        """The resolver of the class results are wrapped in; None: plain text."""
        return self._artifact_constructor

    @property
    def meta(self) -> Registry:
        """Values the author attached; the handler gets the same registry."""
        return self._meta

    @property
    def ephemeral(self) -> bool:
        """Whether it is meant for one turn only."""
        return self._ephemeral

    @property
    def trusted(self) -> bool:
        """Whether its author vouches for its results."""
        return self._trusted

    @property
    def on_collision(self) -> OnCollision:
        """What `ToolRegistry.merge` does when its name is taken."""
        return self._on_collision

    @staticmethod
    def is_tool(value: object) -> TypeIs["Tool"]:
        """Whether the value is a Tool; a mapping of the same shape is none."""
        return isinstance(value, Tool)

    async def validate(self, args: Any) -> Any:
        """The arguments checked, with defaults filled in; of a pydantic schema, an instance.

        Nothing is converted: "10" is not a number. Raises InvalidToolArgs whose cause, a
        ValidationException, lists every fault.
        """
        try:
            return self._arguments.validate(args)
        except ValidationException as error:
            raise InvalidToolArgs from error

    def executor(self, ctx: ExecutionContext) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """Bind the tool to a context: an async function from arguments to the result.

        In this order: (1) the call id is made of the raw arguments, (2) they are validated,
        (3) the start event is emitted, (4) the handler runs, (5) the end event is emitted,
        (6) what the handler raised is raised as the cause of ToolDownstreamError.
        Faults of 1 (TypeError), 2 (InvalidToolArgs) and 3 are raised as they are and
        nothing more is emitted. Cancellation is passed on, not wrapped, after its end event.
        """

        if (bind := getattr(ctx, "bind_tool", None)) is not None:
            bind(self)

        async def execute(args: Any) -> Any:
            call_id = compute_call_id(self._name, args)
            validated = await self.validate(args)
            called = {"tool_name": self._name, "turn_id": str(ctx.id), "call_id": call_id}
            started_at, started_ns = datetime.now(UTC), perf_counter_ns()
            verdict: GuardOutcome | None = None

            def end(is_error: bool) -> AdkToolExecutionEnd:
                # Not the wall clock: set back in between, it would end before it started.
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
                return GuardedToolExecutionEnd.model_validate(members | {"guard": _report(verdict)})

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
                    verdict = self._guard.enforce(result)
                    if verdict.error is not None:
                        raise verdict.error
                    result = verdict.data
                # Inside, as in the ADK: a context that cannot take the end fails the call.
                ctx.emit_tool_execution_end(end(is_error=False))
                return result
            except Exception as error:
                ctx.emit_tool_execution_end(end(is_error=True))
                raise ToolDownstreamError from error
            except BaseException:
                ctx.emit_tool_execution_end(end(is_error=True))
                raise

        return execute

    def describe(self) -> dict[str, Any]:
        """A plain snapshot: `name`, `description` and `inputSchema` as JSON Schema."""
        return {
            "name": self._name,
            "description": self._description,
            "inputSchema": deepcopy(self._arguments.json_schema),
        }

    def to_openai(self) -> dict[str, Any]:
        """The definition as OpenAI's chat completions take it, an entry of `tools`."""
        return {
            "type": "function",
            "function": {
                "name": self._name,
                "description": self._description,
                "parameters": deepcopy(self._arguments.json_schema),
            },
        }

    def to_anthropic(self) -> dict[str, Any]:
        """The definition as Anthropic's messages take it, an entry of `tools`."""
        return {
            "name": self._name,
            "description": self._description,
            "input_schema": deepcopy(self._arguments.json_schema),
        }

    def to_mcp(self) -> dict[str, Any]:
        """The definition as an MCP server's `tools/list` gives it."""
        return self.describe()

    def __repr__(self) -> str:
        return f"Tool(name={self._name!r})"


def _report(verdict: GuardOutcome) -> GuardReport:
    return GuardReport(
        strategy=verdict.strategy,
        outcome=verdict.outcome,
        violations=verdict.violations[:VIOLATIONS_MAX],
    )


class _ToolProblems(MemberProblems):
    """The checks that only a tool's members need."""

    def input_schema(self, schema: Any) -> Arguments:
        if self.is_given("input_schema", schema):
            try:
                return read_input_schema(schema)
            except ValueError as error:
                self.add("input_schema", f"is no input schema: {error}")
        return cast("Arguments", None)  # raise_any follows

    def artifact_constructor(self, resolver: Any) -> None:
        if resolver is None:
            return
        try:
            resolved = resolver()
        except Exception as error:  # whatever the author's own code raises
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
