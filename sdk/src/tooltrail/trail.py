"""`Trail`, the main object of the SDK for an executor's author.

Owns the decorator's options and the trace scope. `recording` builds events, the spool keeps them,
the shipper sends them; `lifetime` opens and closes these. `tool_reports` reports the tools
themselves.

Nothing here raises into the host, with three exceptions that the host asks for: an output guard
that throws, `when_full="raise"`, and `register="strict"`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import wraps
from typing import Any, overload

from uuid_utils import uuid7

from tooltrail import decisions
from tooltrail.announcement import Announcement, remember
from tooltrail.call_ids import call_id_of
from tooltrail.capture import Capture
from tooltrail.decorator import Arguments, make_output_guard, wrap
from tooltrail.emitted import emitted_text
from tooltrail.errors import (
    InvalidToolArgs,
    ToolContractRefused,
    ToolNameTaken,
    ValidationException,
)
from tooltrail.events import NAME_MAX_LENGTH, Decider, Decision
from tooltrail.guard import unwrap
from tooltrail.recording import Call, Clock, ToolSpec
from tooltrail.redact import Redactor
from tooltrail.scope import CONTEXT_MEMBERS, current_scope, enter_scope, leave_scope, make_scope
from tooltrail.settings import CaptureMode, RegisterMode, Settings, SpoolMode, WhenFull
from tooltrail.spool import SpoolFullError
from tooltrail.tool_reports import ToolReports
from tooltrail.tools.arguments import Arguments as AcceptedArguments
from tooltrail.tools.arguments import read_input_schema
from tooltrail.tools.functions import is_partial, name_of
from tooltrail.turns import Turn


class Trail(ToolReports):
    """Records the calls of tools and sends them to a Tooltrail server.

    Options that are not given are read from the environment (`tooltrail.settings` lists them,
    with units and defaults). Without `url` and `api_key` the trail is off: tools run, guards
    work, nothing is recorded, and one warning is logged. `redact` is True for the built-in
    rules, False for none, or a `Redactor`. `clock` and `ids` replace the real times and ids, for
    tests and imports.

    Raises ValueError for an invalid option, and with `when_full="raise"` for a missing url or
    key. A trail may be used from any thread, task and forked child.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        spool: SpoolMode | None = None,
        spool_dir: str | os.PathLike[str] | None = None,
        max_bytes: int | None = None,
        max_age_days: float | None = None,
        when_full: WhenFull | None = None,
        register: RegisterMode | None = None,
        redact: Redactor | bool = True,
        capture: CaptureMode | None = None,
        max_payload_bytes: int | None = None,
        exit_timeout: float | None = None,
        clock: Clock | None = None,
        ids: Callable[[], str] | None = None,
    ) -> None:
        settings = Settings.resolve(
            url=url,
            api_key=api_key,
            spool=spool,
            spool_dir=spool_dir,
            max_bytes=max_bytes,
            max_age_days=max_age_days,
            when_full=when_full,
            register=register,
            capture=capture,
            max_payload_bytes=max_payload_bytes,
            exit_timeout=exit_timeout,
        )
        super().__init__(settings, clock)
        self._redactor = Redactor() if redact is True else redact or None
        self._capture = self._make_capture(None, None)
        self._ids = ids or _new_id

    # Recording

    @overload
    def tool[**P, R](self, fn: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def tool[**P, R](
        self,
        fn: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        version: str | None = None,
        input_schema: Any = None,
        output_schema: Any = None,
        on_invalid: str | None = None,
        capture: CaptureMode | None = None,
        redact: Redactor | bool | None = None,
        timeouts_ms: int | None = None,
        trusted: bool = False,
        ephemeral: bool = False,
        on_collision: str = "throw",
        meta: Mapping[str, Any] | None = None,
        **guard_options: Any,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(self, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Decorate a sync or async function: its calls are recorded, its output is guarded.

        - `name`, `description`, `input_schema`, `trusted`, `ephemeral`, `on_collision`, `meta`:
          describe the tool to the registry. The first three are read from the function by
          default. With an `input_schema` of its own, the arguments of each call are validated:
          the call is recorded as refused, and raises InvalidToolArgs instead of running.
        - `version`: the tool's version in its events. Default: the digest of its contract.
        - `output_schema`, `on_invalid` and all further options are those of `tooltrail.guard`.
          They work even if the trail is off. A function that is already guarded needs none of
          them; its verdicts are recorded, too.
        - `timeouts_ms`: the call's timeout in milliseconds. It is recorded, not enforced.
        - `capture`, `redact`: override the trail's.

        Raises ValueError for a schema that cannot be used, an unknown strategy, or guard options
        without a schema, and TypeError for an unknown option or an object that is not a schema.
        A call raises InvalidToolArgs for arguments that violate `input_schema`, SpoolFullError with
        `when_full="raise"`, and ToolNameTaken or ToolContractRefused with `register="strict"`,
        before the tool runs.
        """
        if fn is None:
            return lambda function: self._decorate(function, **options)
        return self._decorate(fn, **options)

    def _decorate(self, fn: Any, **options: Any) -> Any:
        """Decorate the function inside a `partial`, with its name and all its arguments."""
        if not is_partial(fn):
            return self._decorate_function(fn, **options)
        given = options.pop("name", None) or vars(fn).get("__name__")
        inner = self._decorate(fn.func, name=given, **options)
        decorated = type(fn)(inner, *fn.args, **fn.keywords)
        vars(decorated).update({"__name__": name_of(fn)} | vars(fn) | vars(decorated))
        return decorated

    def _decorate_function(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        version: str | None = None,
        output_schema: Any = None,
        on_invalid: str | None = None,
        capture: CaptureMode | None = None,
        redact: Redactor | bool | None = None,
        timeouts_ms: int | None = None,
        description: str | None = None,
        input_schema: Any = None,
        trusted: bool = False,
        ephemeral: bool = False,
        on_collision: str = "throw",
        meta: Mapping[str, Any] | None = None,
        **guard_options: Any,
    ) -> Callable[..., Any]:
        if output_schema is None:
            fn, own_guard = unwrap(fn)
        else:  # a second guard around the first: the caller gets the second's verdict
            own_guard = None
        if own_guard is not None:
            name = name or own_guard.options.tool_name
        announcement = Announcement(
            fn,
            name=str(name or name_of(fn))[:NAME_MAX_LENGTH],
            description=description,
            input_schema=input_schema,
            output_schema=output_schema if own_guard is None else own_guard.schema,
            trusted=trusted,
            ephemeral=ephemeral,
            on_collision=on_collision,
            meta=meta or {},
        )
        rule = self._make_capture(capture, redact)
        arguments = Arguments(fn)
        accepted = self._read_input_schema(announcement.name, input_schema)
        options = (
            guard_options if on_invalid is None else {"on_invalid": on_invalid} | guard_options
        )
        output_guard = make_output_guard(own_guard, output_schema, announcement.name, options)
        spec: ToolSpec | None = None

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
            nonlocal spec
            try:
                if spec is None:  # not at decoration: hints may name what is defined later
                    self._register([announcement])
                    digest = self._announcer.add(announcement)
                    spec = ToolSpec(announcement.name, version or digest, timeouts_ms, rule)
                given, raw_args = arguments.bind(args, kwargs)
                if accepted is not None:
                    self._check_arguments(accepted, spec, raw_args)
                return self._begin(spec, given, raw_args)
            except (InvalidToolArgs, SpoolFullError, ToolContractRefused, ToolNameTaken):
                raise
            except Exception as error:
                return self._begin_unrecorded(error)

        wrapped = wrap(fn, begin, output_guard)
        if not hasattr(fn, "__name__"):  # a callable object
            wrapped.__name__ = wrapped.__qualname__ = name_of(fn)
        remember(wrapped, announcement)
        return wrapped

    def _read_input_schema(self, tool: str, schema: Any) -> AcceptedArguments | None:
        """Compile an input schema; None if there is none, or it cannot validate arguments."""
        if schema is None:
            return None
        try:
            # The function itself rejects what it does not know.
            return read_input_schema(schema, is_closed=False)
        except ValueError as error:
            self._warn_once(f"arguments of {tool} are not validated: {error}")
            return None

    def _check_arguments(
        self, accepted: AcceptedArguments, spec: ToolSpec, args: dict[str, Any]
    ) -> None:
        """Record arguments that violate the input schema as refused. Raises InvalidToolArgs."""
        try:
            accepted.validate(args)
        except ValidationException as error:
            refusal = decisions.refusal(spec.name, spec.version, args, error)
            self._emit(decisions.placed(refusal, self._ids, self._clock), spec.capture)
            raise InvalidToolArgs from error

    def decision(
        self,
        tool: str,
        decision: Decision,
        *,
        args: Any = None,
        by: Decider | Mapping[str, Any] | None = None,
        reason: str | None = None,
        requested_by: str | None = None,
        tool_call_id: str | None = None,
        invocation_id: str | None = None,
        definition_digest: str | None = None,
        version: str | None = None,
    ) -> str:
        """Record a decision about a call before it runs, or instead of running it. Never raises.

        `by` is who or what decided: a `tooltrail.events.Decider`, or a mapping with `kind`
        (person, policy or guardrail), `id` and `name`. `requested_by` is the id of the person for
        whom the call is made; a person who approves their own request is marked.
        `definition_digest` is the digest of the definition that was shown to whoever decided.

        Decisions with the same `tool_call_id`, the LLM provider's, in the same trace are about the
        same call: give it here or to `trace(tool_call_id=…)`. The call that runs later is
        recognized by it. Without it, pass the invocation id that this returns to the next decision.
        """
        event = decisions.placed(
            {
                "invocation_id": invocation_id,
                "tool_name": tool[:NAME_MAX_LENGTH],
                "tool_version": version,
                "tool_call_id": tool_call_id,
                "decision": decision,
                "by": by.model_dump(exclude_none=True) if isinstance(by, Decider) else by,
                "requested_by": requested_by,
                "reason": reason,
                "definition_digest": definition_digest,
                "call_id": None if args is None else call_id_of(tool, args),
                "args": args,
            },
            self._ids,
            self._clock,
        )
        self._emit(event, self._capture)
        return str(event["invocation_id"])

    def begin(
        self, tool: str, args: Any, *, traceparent: str | None = None, version: str | None = None
    ) -> Call:
        """Record that a call has begun, where its end is seen elsewhere, as in a proxy.

        End it by `finish` or `fail` of what this returns, in any thread. It encloses no other
        calls. `traceparent` is the OpenTelemetry span of the call, if it is known. Raises
        SpoolFullError with `when_full="raise"`.
        """
        try:
            spec = ToolSpec(tool[:NAME_MAX_LENGTH], version, None, self._capture)
            call = self._begin(spec, args, args, traceparent)
        except SpoolFullError:
            raise
        except Exception as error:
            call = self._begin_unrecorded(error)
        call.leave()
        call.enclose_nothing()
        return call

    @contextmanager
    def record(
        self, tool: str, args: dict[str, Any] | None = None, *, version: str | None = None
    ) -> Iterator["Recorded"]:
        """Record the block as one call of `tool`, for code that is not a function.

        Set `output` of the yielded `Recorded` to the result, plain data or an envelope. An
        exception that leaves the block is recorded and raised again. `version` is the tool's
        version in the events. Raises SpoolFullError with `when_full="raise"`.
        """
        try:
            spec = ToolSpec(tool[:NAME_MAX_LENGTH], version, None, self._capture)
            call = self._begin(spec, args or {}, args or {})
        except SpoolFullError:
            raise
        except Exception as error:
            call = self._begin_unrecorded(error)
        recorded = Recorded(call)
        try:
            yield recorded
        except BaseException as error:
            call.fail(error)
            raise
        call.finish(recorded.output)

    @contextmanager
    def trace(
        self,
        trace_id: str | None = None,
        *,
        parent_invocation_id: str | None = None,
        **context: Any,
    ) -> Iterator[str]:
        """Give the calls in the block a trace id and context. Yields the trace id.

        `context` takes members of the AI Core's contracts: `run_id` or `ingestion_run_id`,
        `turn_id`, `case_id`, `tool_call_id` … (see `tooltrail.scope.CONTEXT_MEMBERS`), and who
        makes the calls: `agent`, `agent_version`, `model`, `provider`, `principal` (on whose
        behalf), `conversation` (another name of `run_id`), `service`, `environment`. Service and
        environment are those of `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` if not given.
        Unknown members are ignored with one warning. Inside another trace, everything not given
        is inherited; another agent does not inherit version, model and provider. Without a trace
        id, OpenTelemetry's current span gives it, else it is new.
        """
        for unknown in context.keys() - CONTEXT_MEMBERS:
            self._warn_once(f"trace() got an unknown context member {unknown!r}")
            del context[unknown]
        try:
            scope = make_scope(trace_id, parent_invocation_id, context)
        except Exception as error:  # a value that cannot be converted to text
            self._complain(error)
            scope = make_scope(None, None, {})
        token = enter_scope(scope)
        try:
            yield scope.trace_id
        finally:
            with suppress(ValueError):  # left in another task or context than it was entered in
                leave_scope(token)

    def carry[**P, R](self, fn: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function so that it runs in the current trace, in any thread.

        The wrapped function may run any number of times, also concurrently:
        `pool.map(trail.carry(work), items)`. Each run has its own copy of the context.
        """
        context = copy_context()

        @wraps(fn)
        def carried(*args: P.args, **kwargs: P.kwargs) -> R:
            return context.copy().run(fn, *args, **kwargs)

        return carried

    def current(self) -> Call:
        """The call that the running code belongs to, to set `token_usage`, `attempt` …

        Outside any call it returns a `Call` that is not recorded. See `Call` for the members.
        """
        scope = current_scope()
        if scope is not None and scope.call is not None:
            return scope.call
        return self._unrecorded_call()

    def context(self, turn_id: str) -> Turn:
        """Make the context to pass to an ADK `Tool.executor`; its events are recorded here.

        Tools that run in it are announced to the registry, except ephemeral ones: they live for
        one turn and would only leave a version behind.
        """
        return Turn(turn_id, self.emit, self._ids, self._version_of, self._clock)

    def emit(self, event: Mapping[str, Any]) -> None:
        """Record one event of the wire contract, in snake case. Never raises.

        `args`, `output` and `guard`, and of a decision its `violations`, `reason` and `by`, are
        captured by the trail's rules. The event gets a sequence number, and an `event_id` if it
        has none. Its own `auth`, `producer_id` and `producer_seq` are ignored.
        """
        self._emit(event, self._capture)

    def _emit(self, event: Mapping[str, Any], capture: Capture) -> None:
        append = self._append_to()
        if append is None:
            return
        try:
            append(emitted_text(event, capture, self._ids))
        except Exception as error:
            self._complain(error)

    def _begin(self, spec: ToolSpec, args: Any, raw_args: Any, span: str | None = None) -> Call:
        call = Call(spec, self._append_to(), self._ids, self._clock, self._complain)
        call.span = span or call.span
        if not call.start(args, raw_args) and self._raises_when_full:
            call.leave()
            raise SpoolFullError("the call cannot be recorded, so the tool was not run")
        return call

    def _begin_unrecorded(self, error: Exception) -> Call:
        """After an internal error, let a call run unrecorded or refuse it (`when_full="raise"`)."""
        self._complain(error)
        if self._raises_when_full:
            raise SpoolFullError("the call cannot be recorded, so the tool was not run") from error
        call = self._unrecorded_call()
        call.start({}, {})
        return call

    def _unrecorded_call(self) -> Call:
        return Call(
            ToolSpec("none", None, None, self._capture), None, _new_id, None, self._complain
        )

    def _make_capture(self, mode: str | None, redact: Redactor | bool | None) -> Capture:
        if redact is None:
            redactor = self._redactor
        elif redact is True:
            redactor = self._redactor or Redactor()
        else:
            redactor = redact or None
        return Capture(mode or self.settings.capture, redactor, self.settings.max_payload_bytes)


class Recorded:
    """The call of a `Trail.record` block: `call` is its handle, `output` its result."""

    __slots__ = ("call", "output")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.output: Any = None


def _new_id() -> str:
    return str(uuid7())
