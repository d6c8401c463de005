"""Reports tools, not calls: to the registry, and their definitions as a server serves them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tooltrail import sightings
from tooltrail.announcement import Announcement
from tooltrail.lifetime import Lifetime
from tooltrail.producer import USER_AGENT
from tooltrail.recording import Clock
from tooltrail.settings import Settings
from tooltrail.tools.tool import Tool
from tooltrail.transport import Transport, UnreachableError


class ToolReports(Lifetime):
    """The part of a `Trail` that reports tools. Any thread and forked child may use it."""

    def __init__(self, settings: Settings, clock: Clock | None) -> None:
        super().__init__(settings)
        self._clock = clock
        self._sightings = sightings.Sightings()

    def announce(self, tools: Iterable[Tool]) -> None:
        """Announce tools to the registry before they run, each once: `announce(registry.all())`.

        Their `on_collision` decides what happens if a name is taken. The server's answers raise
        nothing, except ToolNameTaken and ToolContractRefused with `register="strict"`.
        """
        if not self.is_enabled:
            return
        tools = list(tools)
        self._register(Announcement.of(tool) for tool in tools)
        for tool in tools:
            self._announcer.add_tool(tool)
        producer = self._producer or self._make_producer()
        if producer.shipper is not None:
            producer.shipper.wake()

    def _version_of(self, tool: Tool) -> str | None:
        if tool.ephemeral or not self.is_enabled:
            return None
        self._register(Announcement.of(each) for each in (tool,))
        return self._announcer.add_tool(tool)

    def _register(self, announcements: Iterable[Announcement]) -> None:
        """With `register="strict"`, announce tools before they run.

        Raises ToolNameTaken and ToolContractRefused.
        """
        url, api_key = self.settings.url, self.settings.api_key
        if self.settings.register != "strict" or not self.is_enabled or not (url and api_key):
            return
        transport = Transport(url, api_key, USER_AGENT)
        try:
            self._announcer.register(list(announcements), transport)
        except UnreachableError as error:
            self._warn_once(f"the registry is unreachable, so tools run unchecked: {error}")
        finally:
            transport.close()

    def definitions(
        self, server: sightings.Peer, tools: Any, *, client: sightings.Peer | None = None
    ) -> bool:
        """Report the definitions of a server's tools, as a client got them. Never raises.

        `server` and `client` are names, or objects with `name` and `version`, as MCP's
        `serverInfo`. `tools` are the definitions of a `tools/list` as they were served: its result,
        plain JSON or pydantic models. Name the tools as their calls do. Only what changed in this
        process is sent, so call it after every `tools/list`. The text is not redacted here: a
        definition is what a server publishes; the server applies its tenant's patterns.

        Returns whether something was sent.
        """
        if not self.is_enabled:
            return False
        try:
            now = datetime.now(UTC) if self._clock is None else self._clock()
            texts = self._sightings.changed(server, client, tools, now)
            producer = self._producer or self._make_producer()
            if all(map(producer.spool.append_unnumbered, texts)):
                return bool(texts)
            self._sightings.forget()
        except Exception as error:
            self._complain(error)
        return False
