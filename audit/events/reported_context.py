"""Agent, model, provider and user of a call, as spans report them in its start event. Pure."""

from typing import Any, Final, NamedTuple

import msgspec

from audit.events.decode import without_unsafe_escapes

_LONGEST: Final = 200  # characters; longer ones are cut


class ReportedContext(NamedTuple):
    """The members of an event's `context` that can be asked for. None: not reported."""

    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    end_user: str | None = None
    """The person for whom the agent works: the member `user`."""


NOTHING: Final = ReportedContext()


class _Event(msgspec.Struct):
    context: Any = None
    otlp: msgspec.Raw = msgspec.Raw(b"")


_DECODER: Final = msgspec.json.Decoder(_Event)


def reported_context(raw: bytes) -> ReportedContext:
    """The context in a start event that was made of spans; nothing in any other."""
    if b'"otlp"' not in raw or b'"context"' not in raw:
        return NOTHING
    try:
        event = _DECODER.decode(without_unsafe_escapes(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return NOTHING
    context = event.context
    if not event.otlp or not isinstance(context, dict):
        return NOTHING
    agent, model, provider, user = (
        _indexable(context.get(name)) for name in ("agent", "model", "provider", "user")
    )
    return ReportedContext(agent, model, provider, user)


def _indexable(value: Any) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    return value.replace("\x00", "\ufffd")[:_LONGEST]
