"""The tools that an agent may call, by name and in order. Some of them can be hidden."""

from collections.abc import Callable, Iterable
from typing import Protocol, Self

from tooltrail.errors import ToolAlreadyRegistered
from tooltrail.tools.tool import ON_COLLISION, OnCollision, Tool


class AcknowledgedContext(Protocol):
    """A context that reports when its work was acknowledged."""

    def on_ack(self, handler: Callable[[], None], /) -> Callable[[], None]:
        """Call `handler` on acknowledgement. Returns a function that unsubscribes it."""


class ToolRegistry:
    """A set of tools with unique names, in the order they were added.

    Hidden tools stay registered but are not in `visible()`. Raises ToolAlreadyRegistered if two
    of `tools` have the same name. Source: the ADK's `ToolRegistry`.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._hidden: set[str] = set()
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, overwrite: bool = False) -> None:
        """Add a tool. With `overwrite` it replaces the tool with its name, hidden or not.

        Raises ToolAlreadyRegistered for a taken name, whatever the tools' own `on_collision` is
        (that is for `merge`), and TypeError if `tool` is not a Tool.
        """
        if not Tool.is_tool(tool):
            raise TypeError(f"only a Tool can be registered, not {type(tool).__name__}")
        if tool.name in self._tools and not overwrite:
            raise ToolAlreadyRegistered
        self._tools[tool.name] = tool

    def unregister(self, name: str) -> None:
        """Remove a tool and its hidden state. An unknown name has no effect."""
        self._tools.pop(name, None)
        self._hidden.discard(name)

    def get(self, name: str) -> Tool | None:
        """The tool with this name, hidden or not; None if there is none."""
        return self._tools.get(name)

    def has(self, name: str) -> bool:
        """Whether a tool with this name is registered, hidden or not."""
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
        """Show hidden tools again."""
        self._hidden -= set(names)

    def set_hidden(self, *names: str) -> None:
        """Hide exactly these tools. A name that is not registered yet takes effect later."""
        self._hidden = set(names)

    def clear_hidden(self) -> None:
        """Show every tool."""
        self._hidden.clear()

    def prune_ephemeral(self) -> None:
        """Remove the tools that are for one turn only."""
        for tool in self.all():
            if tool.ephemeral:
                self.unregister(tool.name)

    def bind_context(self, ctx: AcknowledgedContext) -> Callable[[], None]:
        """Prune ephemeral tools when the context is acknowledged. Returns the unsubscriber."""
        return ctx.on_ack(self.prune_ephemeral)

    @classmethod
    def merge(
        cls, registries: Iterable["ToolRegistry"], on_collision: OnCollision = "throw"
    ) -> Self:
        """Merge registries, left to right, into a new one. The sources do not change.

        If a name is taken, the incoming tool's own `on_collision` decides: `replace` replaces
        the tool that is there, `keep` drops the incoming one, `throw` uses the argument. A tool
        is hidden if any source that has a tool of this name hides it. Raises
        ToolAlreadyRegistered, and ValueError for an unknown `on_collision`.
        """
        if on_collision not in ON_COLLISION:
            raise ValueError(f"on_collision must be one of {ON_COLLISION}, not {on_collision!r}")
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
