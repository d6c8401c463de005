"""Announces this process's tools to the server's registry, each once, digests first.

Owns the announced form of a tool and the exchange with `POST /api/v1/tools`. Runs in the
shipper's thread. A registry that is unreachable or refuses a tool never affects a call.
"""

import inspect
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from tooltrail.errors import InvalidInitialToolValue, ToolContractRefused, ToolNameTaken
from tooltrail.guard.reading import copy_schema
from tooltrail.redact import opaque
from tooltrail.tools.digest import tool_digest
from tooltrail.tools.tool import Tool
from tooltrail.transport import Answer, Transport, UnreachableError

logger = logging.getLogger("tooltrail")

TOOLS_PER_POST = 100
RETRY_SECONDS = 60.0

# Held while a tool is described and across every fork. If a process forks while another thread
# builds a pydantic schema, the child inherits pydantic's locks as held, by a thread it does not
# have: 2 of 100 children forked within 8 ms of a tool's first call hung forever. A fork waits at
# most FORK_SECONDS, because describing may itself wait for the import lock of the forking thread.
_describing = threading.RLock()
FORK_SECONDS = 5.0


@dataclass(eq=False)
class Announcement:
    """One tool as the registry knows it. Its schemas are computed when first needed.

    `fn` is the decorated function; members that are not given are read from it.
    """

    fn: Callable[..., Any] | None
    name: str
    description: str | None = None
    input_schema: Any = None
    output_schema: Any = None
    trusted: bool = False
    ephemeral: bool = False
    on_collision: str = "throw"
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tool: Tool) -> "Announcement":
        """Make the announcement of a `Tool`."""
        described = tool.describe()
        return cls(
            None,
            name=tool.name,
            description=tool.description,
            input_schema=described["inputSchema"],
            output_schema=tool.output_schema,
            trusted=tool.trusted,
            ephemeral=tool.ephemeral,
            on_collision=tool.on_collision,
            meta=tool.meta.all(),
        )

    @cached_property
    def contract(self) -> dict[str, Any]:
        """The members that the digest covers. Never raises: an unreadable schema is left open."""
        described = self.description or (self.fn and _first_paragraph(self.fn)) or self.name
        return {
            "name": self.name,
            "description": described,
            "input_schema": schema_of(self.input_schema) or self._read_input_schema(described),
            "output_schema": schema_of(self.output_schema),
            "trusted": self.trusted,
            "ephemeral": self.ephemeral,
            "on_collision": self.on_collision,
        }

    @cached_property
    def digest(self) -> str:
        """The digest of `contract`, which identifies it in the registry."""
        return tool_digest(**self.contract)

    def body(self) -> dict[str, Any]:
        """The full announcement as it is posted: contract, metadata and digest."""
        meta = to_jsonable_python(dict(self.meta), fallback=opaque)
        return {**self.contract, "meta": meta, "digest": self.digest}

    def _read_input_schema(self, description: str) -> dict[str, Any]:
        if self.fn is None:
            return {"type": "object"}
        try:
            tool = Tool.from_function(self.fn, name=self.name, description=description)
        except InvalidInitialToolValue:  # `*args`, or a type JSON Schema cannot describe
            return {"type": "object"}
        schema: dict[str, Any] = tool.describe()["inputSchema"]
        return schema


_announced: Final[WeakKeyDictionary[Callable[..., Any], Announcement]] = WeakKeyDictionary()


def remember(fn: Callable[..., Any], announcement: Announcement) -> None:
    """Remember what a decorated function announces."""
    _announced[fn] = announcement


def announcement_of(value: Any) -> Announcement | None:
    """What a function announces that `Trail.tool` has decorated, or a `Tool`; None for others."""
    if isinstance(value, Tool):
        return Announcement.of(value)
    try:
        return _announced.get(value)
    except TypeError:  # not hashable or not weakly referable, so not one of ours
        return None


type _Refused = ToolNameTaken | ToolContractRefused


class Announcer:
    """Announces each tool once. `add` may be called from any thread, `announce` from one only.

    `complain` gets the error if a tool cannot be described. No error reaches the host.
    """

    def __init__(self, complain: Callable[[Exception], None] = lambda error: None) -> None:
        self._complain = complain
        self._tools: WeakKeyDictionary[Tool, str | None] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._waiting: list[Announcement] = []
        self._retry_at = 0.0
        self._is_refused = False
        self._answered: dict[str, _Refused | None] = {}

    def add(self, announcement: Announcement) -> str | None:
        """Queue a tool, to be announced after the next batch.

        Returns its digest, or None if the tool cannot be described.
        """
        try:
            with _describing:
                digest = announcement.digest
        except Exception as error:  # type hints and schemas can raise anything
            self._complain(error)
            return None
        if digest not in self._answered:
            with self._lock:
                self._waiting.append(announcement)
        return digest

    def register(self, announcements: Sequence[Announcement], transport: Transport) -> None:
        """Announce tools now, each once. `transport` must not be the one given to `announce`.

        Raises ToolNameTaken or ToolContractRefused if the registry refused one of them (each
        time, not only the first), and UnreachableError.
        """
        by_digest: dict[str, Announcement] = {}
        for announcement in announcements:
            with suppress(Exception), _describing:  # `add` reports the error
                by_digest[announcement.digest] = announcement
        new = [tool for digest, tool in by_digest.items() if digest not in self._answered]
        for start in range(0, len(new), TOOLS_PER_POST):
            tools = new[start : start + TOOLS_PER_POST]
            answer = _post(transport, tools)
            if not _is_taken_in(answer) and not _is_final(answer):
                raise UnreachableError(f"it returned {answer.status}")
            refused = {one.get("name"): _error_of(one) for one in _refusals(answer)}
            self._answered |= {tool.digest: refused.get(tool.name) for tool in tools}
        for digest in by_digest:
            error = self._answered[digest]
            if error is not None:
                raise error

    def add_tool(self, tool: Tool) -> str | None:
        """Queue a `Tool` the first time it is given. Returns its digest, as `add` does."""
        if tool not in self._tools:
            with _describing:
                announcement = Announcement.of(tool)
            self._tools[tool] = self.add(announcement)
        return self._tools[tool]

    def for_child(self) -> "Announcer":
        """Make the announcer of a forked child, which announces what the parent still had to."""
        child = Announcer(self._complain)
        child._tools = self._tools
        child._waiting = list(self._waiting)
        child._is_refused = self._is_refused
        child._answered = dict(self._answered)
        return child

    def announce(self, transport: Transport) -> None:
        """Announce the queued tools, at most `TOOLS_PER_POST`. Raises UnreachableError."""
        if self._is_refused or not self._waiting or time.monotonic() < self._retry_at:
            return
        with self._lock:
            tools = self._waiting[:TOOLS_PER_POST]
        answer = _post(transport, tools)
        _warn_of_refusals(_refusals(answer))
        if _is_taken_in(answer) or _is_final(answer):
            with self._lock:
                self._waiting = self._waiting[len(tools) :]
        else:
            self._retry_at = time.monotonic() + RETRY_SECONDS
        if _is_final(answer):
            self._is_refused = True
            logger.warning(
                "tooltrail: the registry accepts no tools from this key (%d)", answer.status
            )


def schema_of(schema: Any) -> dict[str, Any] | None:
    """A schema as JSON Schema: a mapping unchanged, a model or type as pydantic describes it.

    Returns None for None, and for a schema that cannot be described.
    """
    if schema is None:
        return None
    try:
        if isinstance(schema, Mapping):
            plain: dict[str, Any] = copy_schema(schema)
            return plain
        adapter = schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)
        return adapter.json_schema()
    except (PydanticUserError, ValueError, TypeError, NameError):
        return None


def _first_paragraph(fn: Callable[..., Any]) -> str:
    return (inspect.getdoc(fn) or "").split("\n\n")[0].replace("\n", " ").strip()


def _post(transport: Transport, tools: Sequence[Announcement]) -> Answer:
    """Post the digests, then the full tools the server does not know. Raises UnreachableError."""
    by_digest = {tool.digest: tool for tool in tools}
    answer = transport.post_tools([{"digest": digest} for digest in by_digest])
    unknown = answer.document.get("unknown")
    if answer.status == 200 and isinstance(unknown, list):
        wanted = [by_digest[digest].body() for digest in unknown if digest in by_digest]
        if wanted:
            answer = transport.post_tools(wanted)
    return answer


def _refusals(answer: Answer) -> Iterator[Mapping[str, Any]]:
    """The tools that the registry refused, for instance because their name is taken."""
    refused = answer.document.get("refused")
    for refusal in refused if isinstance(refused, list) else ():
        if isinstance(refusal, Mapping):
            yield refusal


def _error_of(refusal: Mapping[str, Any]) -> _Refused:
    message = str(refusal.get("message"))
    if refusal.get("code") == "name_taken":
        return ToolNameTaken(message, refusal.get("diff") or {})
    return ToolContractRefused(message)


def _warn_of_refusals(refusals: Iterable[Mapping[str, Any]]) -> None:
    for refusal in refusals:
        name, message = refusal.get("name"), refusal.get("message")
        logger.warning("tooltrail: the registry rejected %s: %s", name, message)


def _is_taken_in(answer: Answer) -> bool:
    """Whether the registry processed each tool. 409: it refused all, as all names are taken."""
    return answer.status in (200, 409)


def _is_final(answer: Answer) -> bool:
    """Whether a retry is useless: key refused, malformed request, or no registry there."""
    return 400 <= answer.status < 500 and answer.status not in (408, 409, 425, 429)


def _before_fork() -> None:
    _describing.acquire(timeout=FORK_SECONDS)


def _after_fork_in_parent() -> None:
    with suppress(RuntimeError):  # not held: waiting for it timed out
        _describing.release()


def _after_fork_in_child() -> None:
    global _describing
    _describing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
