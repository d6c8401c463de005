"""Turn spans into tool calls (`audit.intake.otlp.accounts` makes their events).

Pure. Spans of one logical call become one call: an agent framework, an MCP client and an MCP
server each report the tool they are about to run, one inside the other. Spans that are no tool
calls are skipped, but they stay part of the chain of parents: calls inherit their agent,
conversation and model.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import replace
from tooltrail.events import NAME_MAX_LENGTH

from audit.events.spans import (
    CLIENT,
    MOUNT,
    SERVER,
    Span,
    span_uuid,
)
from audit.intake.otlp.conventions import (
    PART,
    deployed,
    names_of,
    read_context,
)
from audit.intake.otlp.decisions import (
    Decided,
    approval_decisions,
    guardrail_decision,
    has_run,
)
from audit.intake.otlp.facts import Facts, part_of, read_facts, short_id


class Identity(msgspec.Struct, frozen=True, gc=False):
    """The properties of a tool call's span that decide whether two spans are of the same call."""

    tool_name: str
    scope: str
    kind: int
    tool_call_id: str | None


def identity_of(facts: Facts) -> Identity:
    """A tool span's identity, in texts that the index can store."""
    tool_call_id = short_id(facts.tool_call_id)
    return Identity(
        _indexable(facts.tool_name[:NAME_MAX_LENGTH]),
        _indexable(facts.span.scope.name[:NAME_MAX_LENGTH]),
        MOUNT if facts.is_mount else facts.span.kind,
        None if tool_call_id is None else _indexable(tool_call_id),
    )


def is_same_call(outer: Identity, inner: Identity) -> bool:
    """Whether a tool span directly below another one reports the same call.

    It does if a different layer reports the same tool: an agent's span, the MCP client's span in
    it, the MCP server's span in that. A tool that calls itself does so within one layer. A server
    that forwards the call to another server makes a new call. One that hands it on to a server
    mounted in it does not, although the tool may have another name there.
    """
    return inner.kind == MOUNT or (
        outer.tool_name == inner.tool_name
        and (outer.scope, outer.kind) != (inner.scope, inner.kind)
        and (outer.kind, inner.kind) != (SERVER, CLIENT)
        and (None in (ids := (outer.tool_call_id, inner.tool_call_id)) or ids[0] == ids[1])
    )


def shared_place(identity: Identity, parent: UUID | None) -> tuple[UUID, str, str] | None:
    """What a tool span shares with the call of an executor that began beside it, if it is the same.

    A hook may run before the tool's span begins. The span that is current then is the parent of
    both. Several calls of the tool may run there, so only the model's id of the call tells them
    apart: without one, or without a parent, the result is None.
    """
    if parent is None or not identity.tool_call_id:
        return None
    return parent, identity.tool_name, identity.tool_call_id


class ToolCall(msgspec.Struct, gc=False):
    """A logical call: its spans, the outermost first, and its place among the other calls.

    `invocation_id` and `parent_id` are as this request knows them. `started_ns` is the start of a
    call that is already stored; if it is None, the start of the outermost span counts.
    `of_executor`: an executor reported the call itself, and its account counts.
    `is_late`: no span of the call is in this request, which has context for it. `is_remapped`: its
    stored spans were read again.
    """

    facts: list[Facts]
    invocation_id: UUID
    parent_id: UUID | None = None
    context: dict[str, str] = {}
    own_context: dict[str, str] = {}
    """What its own spans say."""
    above: int = 0
    """How many of the known spans above it have context. It only grows: a parent never changes."""
    leaves_at: UUID | None = None
    """The span at which the chain of its parents leaves the request; None if the chain ends."""
    started_ns: int | None = None
    of_executor: bool = False
    is_late: bool = False
    is_remapped: bool = False
    call_id: str | None = None
    """As it is stored. Without one, it is computed."""

    @property
    def outermost(self) -> Span:
        """The span around all others of the call."""
        return self.facts[0].span

    @property
    def started_us(self) -> int:
        """The call's start in microseconds since 1970, as in its events."""
        ns = self.outermost.start_time_unix_nano if self.started_ns is None else self.started_ns
        return ns // 1000


@dataclass(slots=True)
class Mapped:
    """A request's spans as calls and decisions, and the spans that are neither."""

    calls: list[ToolCall]
    others: list[Span]
    decisions: list[Decided] = field(default_factory=list)
    """Of guardrails, and of tools' spans: of calls that ran and of calls that did not."""
    contexts: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """What spans say themselves, by key, as far as it was read."""
    answered: set[str] = field(default_factory=set)
    """Traces with stored answers of models, whose agent or conversation the request names."""

    def context_of(self, span: Span) -> dict[str, str]:
        """What a span of the request says itself."""
        context = self.contexts.get(span.key)
        if context is None:
            context = self.contexts[span.key] = read_context(span)
        return context

    @property
    def decided_spans(self) -> int:
        """The spans of decisions that are no calls."""
        if not self.decisions:
            return 0
        calls = {facts.span.key for call in self.calls for facts in call.facts}
        return len({one.span.key for one in self.decisions} - calls)


def map_spans(spans: Iterable[Span]) -> Mapped:
    """Find the calls among spans. Of spans with the same id, the first counts."""
    return _Mapping(spans).run()


class _Mapping:
    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans: dict[tuple[str, str], Span] = {}
        for span in spans:
            self._spans.setdefault(span.key, span)
        self._facts: dict[tuple[str, str], Facts] = {}
        self._clients: dict[tuple[str, str], list[Facts]] = {}
        """Tool spans of clients, by trace id and parent's span id."""
        self._places: dict[tuple[str, str], _Place] = {}
        self._resources: dict[int, dict[str, str]] = {}
        """What resources say, by the id of the object."""
        self._mapped = Mapped([], [])

    def run(self) -> Mapped:
        mapped = self._mapped
        mapped.others, decisions = self._read()
        mapped.decisions = [one._replace(above=self._above(one.span).context) for one in decisions]
        calls: dict[tuple[str, str], ToolCall] = {}
        depths: dict[tuple[str, str], int] = {}
        for key, facts in self._facts.items():
            head, depths[key] = self._head(facts.span)
            call = calls.get(head.key)
            if call is None:
                calls[head.key] = ToolCall([facts], span_uuid(*head.key))
            else:
                call.facts.append(facts)
        for call in calls.values():
            if len(call.facts) > 1:
                # Of two spans at the same depth (a retry), the one that ended later comes first.
                call.facts.sort(
                    key=lambda each: (depths[each.span.key], -each.span.end_time_unix_nano)
                )
            self._place(call)
        mapped.calls = list(calls.values())
        return mapped

    def _read(self) -> tuple[list[Span], list[Decided]]:
        """Read the facts of tools' spans whose calls ran. Returns other spans and decisions."""
        beside: list[Span] = []
        others: list[Span] = []
        decisions: list[Decided] = []
        tools: dict[tuple[str, str], Facts] = {}
        for key, span in self._spans.items():
            names = names_of(span)
            if names is None:
                beside.append(span)
                continue
            facts = tools[key] = read_facts(span, names)
            approvals = approval_decisions(facts)
            decisions += approvals
            if has_run(facts, approvals):
                self._facts[key] = facts
                if span.kind == CLIENT and span.parent_span_id:
                    beside_it = (span.trace_id, span.parent_span_id)
                    self._clients.setdefault(beside_it, []).append(facts)
        tool_names: dict[tuple[str, str], str] | None = None
        for span in beside:
            around = tools.get((span.trace_id, span.parent_span_id))
            if span.name == PART and around is not None and around.span.key in self._facts:
                self._facts[span.key] = part_of(span, around)
                continue
            one = guardrail_decision(span, around)
            if one is None:
                others.append(span)
                continue
            if one.tool_name is None and one.tool_call_id is not None:
                if tool_names is None:
                    tool_names = {
                        (each.span.trace_id, each.tool_call_id): each.tool_name
                        for each in tools.values()
                        if each.tool_call_id is not None
                    }
                one = one._replace(tool_name=tool_names.get((span.trace_id, one.tool_call_id)))
            decisions.append(one)
        return others, decisions

    def _parent(self, span: Span) -> Span | None:
        return self._spans.get((span.trace_id, span.parent_span_id))

    def _head(self, span: Span) -> tuple[Span, int]:
        """The outermost span of a tool span's call, and the number of levels between the two."""
        seen = {span.key}
        head, depth = span, 0
        while (outer := self._outer(self._facts[head.key])) is not None and outer.key not in seen:
            head, depth = outer, depth + 1
            seen.add(head.key)
        return head, depth

    def _outer(self, inner: Facts) -> Span | None:
        """The next span of the same call: the one around it, or the client's beside a server's."""
        parent = self._parent(inner.span)
        outer = None if parent is None else self._facts.get(parent.key)
        if outer is not None and (
            inner.is_part or is_same_call(identity_of(outer), identity_of(inner))
        ):
            return outer.span
        return self._client_beside(inner) if inner.span.kind == SERVER else None

    def _client_beside(self, server: Facts) -> Span | None:
        """The client's span of a server's, if both have the same parent.

        A client and a server in one process may both take the caller's span for their parent. The
        server's is in the time of the client's. If several are possible, none is taken.
        """
        span = server.span
        beside = [
            client.span
            for client in self._clients.get((span.trace_id, span.parent_span_id), ())
            if client.span.start_time_unix_nano <= span.start_time_unix_nano
            and span.end_time_unix_nano <= client.span.end_time_unix_nano
            and is_same_call(identity_of(client), identity_of(server))
        ]
        return beside[0] if len(beside) == 1 else None

    def _place(self, call: ToolCall) -> None:
        """Set a call's parent and its context."""
        place = self._above(call.outermost)
        call.parent_id, call.above, call.leaves_at = place.parent_id, place.above, place.leaves_at
        own: dict[str, str] = {}
        for facts in reversed(call.facts):
            own |= self._mapped.context_of(facts.span)
        own |= self._deployed(call.outermost.resource)
        call.own_context = own
        call.context = place.context | own

    def _deployed(self, resource: dict[str, Any]) -> dict[str, str]:
        """What a resource says. The spans of one share the object."""
        members = self._resources.get(id(resource))
        if members is None:
            members = self._resources[id(resource)] = deployed(resource)
        return members

    def _above(self, span: Span) -> "_Place":
        path = []
        seen: set[tuple[str, str]] = set()
        at: Span | None = span
        while at is not None and at.key not in self._places and at.key not in seen:
            path.append(at)
            seen.add(at.key)
            at = self._parent(at)
        for each in reversed(path):
            self._places[each.key] = self._place_of(each)
        return self._places[span.key]

    def _place_of(self, span: Span) -> "_Place":
        if not span.parent_span_id:
            return _Place(None, {}, 0, None)
        parent = self._parent(span)
        if parent is None or parent.key not in self._places:
            outside = span_uuid(span.trace_id, span.parent_span_id)
            return _Place(outside, {}, 0, outside)
        place = self._places[parent.key]
        context = self._mapped.context_of(parent)
        if context:
            place = replace(place, context=place.context | context, above=place.above + 1)
        if parent.key not in self._facts:
            return place
        return replace(place, parent_id=span_uuid(*self._head(parent)[0].key))


class _Place(msgspec.Struct, frozen=True, gc=False):
    """A span's place: the call around it, or its nearest known substitute, and what is above."""

    parent_id: UUID | None
    context: dict[str, str]
    above: int
    leaves_at: UUID | None


def _indexable(text: str) -> str:
    return text.replace("\x00", "\ufffd")
