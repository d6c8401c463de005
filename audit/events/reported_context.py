"""Who made a call, in what and for whom, as its start event reports it. Pure."""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

_LONGEST: Final = 200  # characters; longer ones are cut
_REMEMBERED: Final = 1_000  # bytes; longer ones would fill the memory


class ReportedContext(NamedTuple):
    """The members of an event's `context` that can be asked for. None: not reported."""

    agent: str | None = None
    agent_version: str | None = None
    """Of an agent that names none, the version of its service."""
    model: str | None = None
    provider: str | None = None
    principal: str | None = None
    """On whose behalf the agent works; `user` in events of older SDKs."""
    environment: str | None = None
    service: str | None = None


class Reported(NamedTuple):
    """The context in an event, and the conversation in it, which is the run of a call."""

    context: ReportedContext
    conversation: str | None


NOTHING: Final = ReportedContext()
_SILENT: Final = Reported(NOTHING, None)
_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


def reported_context(context: bytes) -> Reported:
    """What a start event's member `context` says: of spans, of an adapter, of any executor.

    Takes its JSON, empty if the event has none. Any other value than an object says nothing.
    """
    if not context:
        return _SILENT
    context = bytes(context)
    return _read_again(context) if len(context) <= _REMEMBERED else _read(context)


def _read(context: bytes) -> Reported:
    try:
        members = _DECODER.decode(context)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _SILENT
    texts = {name: value for name, value in members.items() if value and isinstance(value, str)}
    if len(context) > _LONGEST or b"\\u0000" in context:
        texts = {name: value.replace("\x00", "\ufffd")[:_LONGEST] for name, value in texts.items()}
    get = texts.get
    agent, version = get("agent"), get("agent_version")
    if version is None and agent is not None:
        version = get("service_version")
    # By position: for each start event.
    context_in_event = ReportedContext(
        agent,
        version,
        get("model"),
        get("provider"),
        get("principal") or get("user"),
        get("environment"),
        get("service"),
    )
    return Reported(context_in_event, get("conversation"))


_read_again = lru_cache(maxsize=5_000)(_read)  # 0.3 µs instead of 4: calls of a run have the same
