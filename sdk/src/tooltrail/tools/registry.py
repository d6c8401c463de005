"""The tools an agent may call, by name, in order, some of them hidden."""

from collections.abc import Callable, Iterable
from typing import Protocol, Self

from tooltrail.errors import ToolAlreadyRegistered
from tooltrail.tools.tool import ON_COLLISION, OnCollision, Tool


class AcknowledgedContext(Protocol):
    """A context that tells when the work it stands for was accepted."""

    def on_ack(self, handler: Callable[[], None], /) -> Callable[[], None]:
        """Call `handler` on acknowledgement; returns a function that unsubscribes it."""


class ToolRegistry:
    """A set of tools with unique names that keeps the order they came in.

    Hidden tools stay registered and are left out of `visible()`. Source: the ADK's
    `ToolRegistry`. Raises ToolAlreadyRegistered where two of `tools` share a name.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._hidden: set[str] = set()
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, overwrite: bool = False) -> None:
        """Add a tool. With `overwrite` it takes the place and hiddenness of its namesake.

        Raises ToolAlreadyRegistered for a taken name whatever the tools' own `on_collision`
        says (that is for `merge`), TypeError for what is not a Tool.
        """
        if not Tool.is_tool(tool):
            raise TypeError(f"only a Tool can be registered, not {type(tool).__name__}")
        if tool.name in self._tools and not overwrite:
            raise ToolAlreadyRegistered
        self._tools[tool.name] = tool

    def unregister(self, name: str) -> None:
        """Remove a tool and forget that it was hidden; an unknown name is no matter."""
        self._tools.pop(name, None)
        self._hidden.discard(name)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, hidden or not."""
        return self._tools.get(name)

    def has(self, name: str) -> bool:
        """Whether a tool of that name is registered, hidden or not."""
        return name in self._tools

    def all(self) -> list[Tool]:
        """Every tool, in order."""
        return list(self._tools.values())

    def visible(self) -> list[Tool]:
        """The tools that are not hidden, in order."""
        return [tool for name, tool in self._tools.items() if name not in self._hidden]

    def hidden(self) -> list[Tool]:
        """The hidden tools, in order."""
        return [tool for name, tool in self._tools.items() if name in self._hidden]

    def hide(self, *names: str) -> None:
        """Hide registered tools; unknown names have no effect, now or later."""
        self._hidden |= self._tools.keys() & set(names)

    def unhide(self, *names: str) -> None:
        """Show tools again."""
        self._hidden -= set(names)

    def set_hidden(self, *names: str) -> None:
        """Hide exactly these; a name not registered yet counts once it is."""
        self._hidden = set(names)

    def clear_hidden(self) -> None:
        """Show every tool."""
        self._hidden.clear()

    def prune_ephemeral(self) -> None:
        """Remove the tools that were meant for one turn only."""
        for tool in self.all():
            if tool.ephemeral:
                self.unregister(tool.name)

    def bind_context(self, ctx: AcknowledgedContext) -> Callable[[], None]:
        """Prune ephemeral tools when the context is acknowledged; returns the unsubscriber."""
        return ctx.on_ack(self.prune_ephemeral)

    @classmethod
    def merge(
        cls, registries: Iterable["ToolRegistry"], on_collision: OnCollision = "throw"
    ) -> Self:
        """One new registry from many, left to right; the sources stay as they are.

        Where a name is taken, the incoming tool's own `on_collision` decides: `replace` puts
        it in the old one's place, `keep` drops it, `throw` leaves it to the argument. A tool
        is hidden if any source that has one of its name hides it. Raises
        ToolAlreadyRegistered, and ValueError for an unknown `on_collision`.
        """
        if on_collision not in ON_COLLISION:
            raise ValueError(f"on_collision is one of {ON_COLLISION}, not {on_collision!r}")
        sources = list(registries)
        merged = cls()
        for tool in (tool for source in sources for tool in source.all()):
            if merged.has(tool.name):
                policy = on_collision if tool.on_collision == "throw" else tool.on_collision
                if policy == "keep":
                    continue
                merged.register(tool, overwrite=policy == "replace")
            else:
                merged.register(tool)
        merged.hide(*(tool.name for source in sources for tool in source.hidden()))
        return merged
