"""Records a tool that yields its result in items: to its last item, its failure, or its end.

The tool runs as its consumer asks for items, so its call begins with the first. What runs inside
the tool is nested in its call; what the consumer does between two items is not.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import Any, Protocol


class Followed(Protocol):
    """Receives what a tool that yields does: for example a `tooltrail.recording.Call`."""

    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def finish(self, result: Any) -> None: ...
    def fail(self, error: BaseException) -> None: ...


Begin = Callable[[tuple[Any, ...], dict[str, Any]], Followed]
"""Starts recording a function that yields."""


class _Items:
    """The first and the last item, and how many there were: as much as one event may carry."""

    def __init__(self) -> None:
        self._count = 0
        self._first: Any = None
        self._last: Any = None

    def add(self, item: Any) -> None:
        if not self._count:
            self._first = item
        self._last = item
        self._count += 1

    def summary(self) -> dict[str, Any]:
        return {"items": self._count, "first": self._first, "last": self._last}


def wrap_generator(fn: Callable[..., Generator[Any, Any, Any]], begin: Begin) -> Callable[..., Any]:
    """Wrap a generator function. A consumer that stops before the last item cancels the call."""

    @wraps(fn)
    def call_items(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = fn(*args, **kwargs)
        return (yield from _follow(begin(args, kwargs), generator))

    return call_items


def _follow(call: Followed, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    items = _Items()
    try:
        item = next(generator)
        while True:
            call.leave()
            items.add(item)
            try:
                sent = yield item
            except GeneratorExit:
                call.enter()
                generator.close()
                raise
            except BaseException as error:
                call.enter()
                item = generator.throw(error)
            else:
                call.enter()
                item = generator.send(sent)
    except StopIteration as stop:
        call.finish(items.summary())
        return stop.value
    except BaseException as error:
        call.fail(error)
        raise


def wrap_async_generator(
    fn: Callable[..., AsyncGenerator[Any, Any]], begin: Begin
) -> Callable[..., Any]:
    """Wrap an async generator function in the same way."""

    @wraps(fn)
    async def call_items(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = fn(*args, **kwargs)
        call = begin(args, kwargs)
        items = _Items()
        try:
            item = await anext(generator)
            while True:
                call.leave()
                items.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    call.enter()
                    await generator.aclose()
                    raise
                except BaseException as error:
                    call.enter()
                    item = await generator.athrow(error)
                else:
                    call.enter()
                    item = await generator.asend(sent)
        except StopAsyncIteration:
            call.finish(items.summary())
        except BaseException as error:
            call.fail(error)
            raise

    return call_items
