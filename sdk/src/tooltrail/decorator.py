"""Wraps a function so that each call is recorded and its output is guarded.

Owns reading a call's arguments and the order of recording, running and guarding. The function's
result or exception reaches the caller even if recording fails.
"""

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from types import CoroutineType
from typing import Any

from tooltrail.guard import Guard, create_guard
from tooltrail.mcp_results import MISSING, document_of, read_result, with_structured
from tooltrail.recording import Call
from tooltrail.streaming import wrap_async_generator, wrap_generator

Begin = Callable[[tuple[Any, ...], dict[str, Any]], Call]
"""Starts recording a call with these arguments. If it raises, the tool does not run."""

OutputGuard = Callable[[Any, Call], Any]
"""Checks a tool's output and notes the verdict on the call.

Returns what the caller gets, or raises.
"""


def make_output_guard(
    own: Guard | None, schema: Any, tool: str, options: dict[str, Any]
) -> OutputGuard | None:
    """Make the guard of a tool's output from its schema, or else from its own guard.

    Returns None if the tool has neither. `options` are those of `tooltrail.guard`. Raises
    ValueError for options without a schema, and otherwise as `create_guard` does.
    """
    if schema is not None:
        guard = create_guard(schema, {"tool_name": tool, **options})
    elif options:
        raise ValueError(f"{', '.join(options)}: a guard needs an output_schema")
    elif own is not None:
        guard = own
    else:
        return None

    def judge(output: Any, call: Call) -> Any:
        document = document_of(output)
        result = None if document is None else read_result(document)
        if result is None:
            verdict = guard.enforce(output)
        elif result.is_error or not result.is_complete:
            return output  # an output schema describes neither errors nor interim results
        elif result.source:
            verdict = guard.enforce(result.value)
        else:
            verdict = guard.enforce_missing(MISSING)
        call.judged(verdict, output)
        if verdict.error is not None:
            raise verdict.error
        if result is None:
            return verdict.data
        return output if verdict.outcome == "passed" else with_structured(output, verdict.data)

    return judge


def wrap(
    fn: Callable[..., Any],
    begin: Begin,
    guard: OutputGuard | None,
) -> Callable[..., Any]:
    """Wrap a sync or async function; the wrapper is of the same kind.

    `begin` starts recording a call. If it raises, the tool does not run. A function that yields
    is recorded to its end, unless a guard judges what it returns.
    """
    if guard is None and _is(inspect.isgeneratorfunction, fn):
        return wrap_generator(fn, begin)
    if guard is None and _is(inspect.isasyncgenfunction, fn):
        return wrap_async_generator(fn, begin)
    if _is(inspect.iscoroutinefunction, fn):

        @wraps(fn)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            try:
                result = await fn(*args, **kwargs)
                if guard is not None:
                    result = guard(result, call)
            except BaseException as error:
                call.fail(error)
                raise
            call.finish(result)
            return result

        return call_async

    async def carry_on(call: Call, rest: Coroutine[Any, Any, Any]) -> Any:
        call.enter()
        try:
            result = await rest
            if guard is not None:
                result = guard(result, call)
        except BaseException as error:
            call.fail(error)
            raise
        call.finish(result)
        return result

    @wraps(fn)
    def call_sync(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        try:
            result = fn(*args, **kwargs)
            if type(result) is CoroutineType:  # e.g. from a lambda around an async function
                call.leave()
                return carry_on(call, result)
            if guard is not None:
                result = guard(result, call)
        except BaseException as error:
            call.fail(error)
            raise
        call.finish(result)
        return result

    return call_sync


def _is(kind: Callable[[Any], bool], fn: Any) -> bool:
    """Whether a function, or the `__call__` of an object, is of this kind."""
    return kind(fn) or kind(getattr(fn, "__call__", None))  # noqa: B004  # not whether it has one


def _anything(*args: Any, **kwargs: Any) -> None:
    """Provides its signature for functions that have none."""


class Arguments:
    """Turns positional and keyword arguments into named members, the form of a tool's arguments."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        try:
            self._signature = inspect.signature(fn)
        except (TypeError, ValueError):  # some functions written in C have no signature
            self._signature = inspect.signature(_anything)
        parameters = list(self._signature.parameters.values())
        # The object a method is called on is not an argument of the tool.
        self._owner = (
            parameters[0].name if parameters and parameters[0].name in ("self", "cls") else None
        )
        self._is_plain = not any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), "")
        self._names = tuple(p.name for p in parameters)
        self._defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments with defaults filled in, and the arguments as given.

        Arguments that do not match the signature are kept: the function itself rejects them.
        """
        if self._is_plain:
            given = dict(zip(self._names, args, strict=False)) | kwargs if args else kwargs
        else:
            try:
                given = dict(self._signature.bind_partial(*args, **kwargs).arguments)
            except TypeError:
                given = {"args": args, "kwargs": kwargs}
            else:
                # What `**rest` takes are arguments, too: the caller knows no argument `rest`.
                rest = given.pop(self._rest, {})
                given |= rest if rest.keys().isdisjoint(given) else {self._rest: rest}
        if self._owner is not None and self._owner in given:
            given = {name: value for name, value in given.items() if name != self._owner}
        return (self._defaults | given if self._defaults else given), given
