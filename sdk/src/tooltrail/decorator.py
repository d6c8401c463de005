"""Wraps a function so that each call of it is recorded and its output guarded.

Owns reading a call's arguments, the order of recording, running and guarding, and that the
function's result or exception reaches the caller whatever happens to the recording.
"""

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from types import CoroutineType
from typing import Any

from tooltrail.guard import Guard, create_guard
from tooltrail.recording import Call

OutputGuard = Callable[[Any, Call], Any]
"""Judges a tool's output: returns what the caller gets, or raises; notes its verdict."""


def make_output_guard(
    own: Guard | None, schema: Any, tool: str, options: dict[str, Any]
) -> OutputGuard | None:
    """Make the guard of a tool's output: its own, or one of the schema; None without either.

    `options` are `tooltrail.guard`'s. Raises ValueError for a schema or options that are none.
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
        verdict = guard.enforce(output)
        call.judged(verdict, output)
        if verdict.error is not None:
            raise verdict.error
        return verdict.data

    return judge


def wrap(
    fn: Callable[..., Any],
    begin: Callable[[tuple[Any, ...], dict[str, Any]], Call],
    guard: OutputGuard | None,
) -> Callable[..., Any]:
    """Wrap a function, sync or async; the wrapper is of the same kind.

    `begin` starts recording a call. What it raises stops the call before the tool runs.
    """
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None)  # noqa: B004 — an object whose call is async
    ):

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
            if type(result) is CoroutineType:  # as of a lambda around an async function
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


def _anything(*args: Any, **kwargs: Any) -> None:
    """Lend its signature."""


class Arguments:
    """Turns positional and keyword arguments into members, as a tool's arguments are."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        try:
            self._signature = inspect.signature(fn)
        except (TypeError, ValueError):  # some that are written in C do not tell theirs
            self._signature = inspect.signature(_anything)
        parameters = list(self._signature.parameters.values())
        # Of a method, what it is called on is no argument of the tool.
        self._owner = (
            parameters[0].name if parameters and parameters[0].name in ("self", "cls") else None
        )
        self._is_plain = not any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        self._names = tuple(p.name for p in parameters)
        self._defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments with defaults, and only those given.

        Arguments that do not fit are left for the function itself to refuse.
        """
        if self._is_plain:
            given = dict(zip(self._names, args, strict=False)) | kwargs if args else kwargs
        else:
            try:
                given = dict(self._signature.bind_partial(*args, **kwargs).arguments)
            except TypeError:
                given = {"args": args, "kwargs": kwargs}
        if self._owner is not None and self._owner in given:
            given = {name: value for name, value in given.items() if name != self._owner}
        return (self._defaults | given if self._defaults else given), given
