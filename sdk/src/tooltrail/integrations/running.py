"""The calls that a framework is making: what all adapters have in common.

Owns pairing a framework's start with its end, and keeping an adapter's mistakes from the tool.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from inspect import isgenerator
from typing import Any

from pydantic import ValidationError

from tooltrail.current_span import current_span
from tooltrail.events import Decision
from tooltrail.recording import Call
from tooltrail.scope import current_scope
from tooltrail.spool import SpoolFullError
from tooltrail.streaming import wrap_async_generator, wrap_generator
from tooltrail.trail import Recorded, Trail


class ReportedError(Exception):
    """A failure that a framework reports by its text only."""


class Running:
    """The calls that have begun and not ended, each by a key of the framework's.

    Nothing here raises, except SpoolFullError with `when_full="raise"`, before the tool runs.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._open: dict[Hashable, tuple[ExitStack, Recorded]] = {}
        self._awaiting: dict[Hashable, str] = {}  # key of what awaits an approval: its call's id

    @contextmanager
    def harmless(self) -> Iterator[None]:
        """Report an adapter's mistake like one of the trail, instead of raising it."""
        try:
            yield
        except SpoolFullError:
            raise
        except Exception as error:
            self._trail._complain(error)

    def begin(
        self,
        key: Hashable,
        tool: str,
        args: Any,
        *,
        trace_id: str | None = None,
        parent: Hashable = None,
        encloses: bool = True,
        context: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> None:
        """Record that a tool is about to run.

        - `trace_id` is used if the call is in no trace or span yet.
        - `parent` is the key of the call around it, where that is not the one of this context.
        - `encloses` says whether what runs next in this context belongs to this call. False if
          the framework begins several calls in one context.
        - `context` is what is known of the agent: `agent`, `model`, `conversation`, `principal` …
        - `members` are those of `Trail.trace`.
        """
        with self.harmless():
            place: AbstractContextManager[str]
            around = self._open.get(parent)
            if around is not None:
                call = around[1].call
                place = self._trail.trace(
                    call.trace_id, parent_invocation_id=call.id, **members, context=known(context)
                )
            else:
                place = self._place(trace_id, context, members)
            record = self._trail.record(tool, args if isinstance(args, dict) else {"input": args})
            with ExitStack() as stack:
                if encloses:
                    stack.enter_context(place)
                    recorded = stack.enter_context(record)
                else:
                    with place:
                        recorded = stack.enter_context(record)
                        recorded.call.leave()
                self._open[key] = (stack.pop_all(), recorded)

    def decide(
        self,
        key: Hashable,
        tool: str,
        decision: Decision,
        *,
        args: Any = None,
        by: Mapping[str, str] | None = None,
        reason: str | None = None,
        tool_call_id: str | None = None,
        trace_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> None:
        """Record a decision about the call with this key: `awaiting` first, then the answer.

        The call may have begun. An answer without a request is recorded, too, unless it is
        `approved`: most frameworks report that for every call that needs no approval.
        """
        with self.harmless():
            awaiting = self._awaiting.pop(key, None)
            if decision == "approved" and awaiting is None:
                return
            place: AbstractContextManager[str]
            if key in self._open:
                call = self._open[key][1].call
                awaiting = call.id
                place = self._trail.trace(call.trace_id, context=known(context), **members)
            else:
                place = self._place(trace_id, context, members)
            with place:
                decided = self._trail.decision(
                    tool,
                    decision,
                    args=args,
                    by=by,
                    reason=reason,
                    tool_call_id=tool_call_id,
                    invocation_id=awaiting,
                )
            if decision == "awaiting":
                self._awaiting[key] = decided

    def _place(
        self, trace_id: str | None, context: Mapping[str, Any] | None, members: dict[str, Any]
    ) -> AbstractContextManager[str]:
        if current_scope() is not None or current_span() is not None:
            trace_id = None
        return self._trail.trace(trace_id, context=known(context), **members)

    def is_open(self, key: Hashable) -> bool:
        """Whether a call with this key has begun and not ended."""
        return key in self._open

    def end(self, key: Hashable, output: Any) -> None:
        """Record that the tool returned `output`. A key that is not open is ignored."""
        with self.harmless():
            stack, recorded = self._open.pop(key, (None, None))
            if stack is not None and recorded is not None:
                recorded.output = output
                stack.close()

    def fail(self, key: Hashable, error: BaseException | str) -> None:
        """Record that the tool raised `error`. A key that is not open is ignored."""
        with self.harmless():
            stack, _ = self._open.pop(key, (None, None))
            if stack is not None:
                raised = ReportedError(error) if isinstance(error, str) else error
                stack.__exit__(type(raised), raised, raised.__traceback__)

    def follow(self, key: Hashable, items: Any) -> Any:
        """The items of a tool that yields them, async or not: its call ends with the last one."""
        followed = _Followed(self, key, self._open[key][1].call)
        wrap = wrap_generator if isgenerator(items) else wrap_async_generator
        return wrap(lambda: items, lambda args, kwargs: followed)()

    @contextmanager
    def around(self, tool: str, args: Any, **options: Any) -> Iterator["Outcome"]:
        """Record the block as a call; the options are those of `begin`. Raises what it raises.

        Set `output` of the yielded object, or `failure` to the text of an error it reports.
        """
        key, outcome = object(), Outcome()
        self.begin(key, tool, args, **options)
        if key in self._open:
            outcome.call = self._open[key][1].call
        try:
            yield outcome
        except BaseException as error:
            self.fail(key, outcome.error or error)
            raise
        if outcome.failure is None:
            self.end(key, outcome.output)
        else:
            self.fail(key, outcome.failure)


def known(context: Mapping[str, Any] | None) -> dict[str, str]:
    """What of a context is known, as texts."""
    return {name: str(value) for name, value in (context or {}).items() if value}


def model_usage(prompt: Any, completion: Any) -> dict[str, int] | None:
    """The tokens of a model's answer, as the member `model_usage`; None if it used none."""
    counts = {"prompt": prompt or 0, "completion": completion or 0}
    return counts if any(counts.values()) else None


def read_json(value: Any) -> Any:
    """The object or list in a text that a framework made of it; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


class _Followed:
    """An open call, for what follows the items of its tool."""

    def __init__(self, running: Running, key: Hashable, call: Call) -> None:
        self.enter, self.leave = call.enter, call.leave
        self.finish, self.fail = partial(running.end, key), partial(running.fail, key)


def why_rejected(error: Exception) -> str:
    """Why arguments were rejected, without quoting them: pydantic's own text does."""
    if not isinstance(error, ValidationError):
        return str(error)
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(".".join(map(str, each["loc"])) + ": " + each["msg"] for each in errors)


class Outcome:
    """What the block of `Running.around` says of its call."""

    def __init__(self) -> None:
        self.call: Call | None = None  # None if it could not be begun
        self.error: BaseException | None = None  # what to record instead of what is raised
        self.output: Any = None
        self.failure: str | None = None
