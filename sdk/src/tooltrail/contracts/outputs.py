"""Wraps functions so that they return the AI Core's envelopes."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter_ns
from typing import Any, Concatenate, get_type_hints, overload

from pydantic import BaseModel

from tooltrail.contracts.failures import tool_error
from tooltrail.contracts.models import ToolError, ToolResult, ToolResultMeta, Untyped


@overload
def returns_tool_output[IT: BaseModel, **P, OT: BaseModel](
    fn: Callable[Concatenate[IT, P], Awaitable[OT]], /
) -> Callable[Concatenate[IT, P], Awaitable[ToolResult[IT, OT] | ToolError[IT]]]: ...
@overload
def returns_tool_output[IT: BaseModel, **P, OT: BaseModel](
    fn: Callable[Concatenate[IT, P], OT], /
) -> Callable[Concatenate[IT, P], ToolResult[IT, OT] | ToolError[IT]]: ...
def returns_tool_output(fn: Callable[..., Any], /) -> Callable[..., Any]:
    """Make a sync or async function return `ToolResult` or `ToolError`.

    The type hint of its first parameter must be the input model; a mapping is accepted in its
    place and validated. The function returns a model, preferably the hinted one. Exceptions
    become `ToolError`s with the type from `describe_failure`; only what ends a task or the
    process (cancellation, exit) is raised. An envelope that the function returns is passed on
    unchanged. Raises TypeError if the hint is missing.
    """
    input_model, output_model = _models(fn)

    def read(given: Any) -> BaseModel:
        return given if isinstance(given, input_model) else input_model.model_validate(given)

    def succeed(validated: BaseModel, data: Any, took_ms: int) -> Any:
        if isinstance(data, ToolResult | ToolError):
            return data
        envelope: Any = ToolResult.__class_getitem__((input_model, output_model or type(data)))
        return envelope(input=validated, data=data, meta=ToolResultMeta(took_ms=took_ms))

    def fail(error: Exception, given: Any, took_ms: int) -> Any:
        # An input that could not be validated is echoed only if it has members.
        members = dict(given) if isinstance(given, Mapping) else {}
        input_value = given if isinstance(given, BaseModel) else Untyped.model_validate(members)
        return tool_error(error, input_value, took_ms=took_ms)

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def answer_async(given: Any, /, *args: Any, **kwargs: Any) -> Any:
            clock = _Clock()
            try:
                given = read(given)
                return succeed(given, await fn(given, *args, **kwargs), clock.took_ms())
            except Exception as error:
                return fail(error, given, clock.took_ms())

        return answer_async

    @functools.wraps(fn)
    def answer(given: Any, /, *args: Any, **kwargs: Any) -> Any:
        clock = _Clock()
        try:
            given = read(given)
            return succeed(given, fn(given, *args, **kwargs), clock.took_ms())
        except Exception as error:
            return fail(error, given, clock.took_ms())

    return answer


class _Clock:
    def __init__(self) -> None:
        self._started_ns = perf_counter_ns()

    def took_ms(self) -> int:
        return (perf_counter_ns() - self._started_ns) // 1_000_000


def _models(fn: Callable[..., Any]) -> tuple[type[BaseModel], type[BaseModel] | None]:
    hints = get_type_hints(fn)
    input_model = _model(hints.get(next(iter(inspect.signature(fn).parameters), "")))
    if input_model is None:
        raise TypeError(f"the first parameter of {fn.__name__} needs a pydantic model as type")
    return input_model, _model(hints.get("return"))


def _model(hint: Any) -> type[BaseModel] | None:
    if not isinstance(hint, type) or not issubclass(hint, BaseModel):
        return None
    return None if issubclass(hint, ToolResult | ToolError) else hint
