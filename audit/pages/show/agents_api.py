"""Agents and conversations of a range over the API. Their calls are read one by one, also without
a query.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query
from pydantic import Field

from audit.pages.show.api_query import QueriedRangeParams
from audit.pages.show.figure_page import FigurePage
from audit.pages.show.figure_schemas import QueriedBounds
from audit.pages.show.ranges import bounds
from audit.pages.show.router import router
from audit.queries.agents import Agent, AgentFigures, agents_of_query
from audit.queries.conversations import Conversation, conversations_of_query
from tenants.api_reads import Answer, ListParams, Page, reads, utc

_PROBLEMS = ("range", "query", "cursor", "limit")


class CallSumListParams(QueriedRangeParams, ListParams):
    """Which calls, and how many rows."""

    limit: int = Field(1000, ge=1, le=1000)
    """Maximum number of rows."""


class CallSums(Answer):
    """Sums of calls that started."""

    calls: int
    failed: int
    violating: int
    """Calls whose results violate their schema."""
    tokens: int
    last_at: datetime
    """When the last of them started."""
    p50_ms: float | None
    """The median duration of completed calls, off by at most 5 %."""
    p95_ms: float | None


class AgentSums(CallSums):
    """Sums of calls of agents."""

    refused: int
    """Calls that were refused, and did not run. They are in no other figure."""


class AgentTool(AgentSums):
    """The calls of an agent and a tool."""

    tool_name: str


class AgentVersion(AgentSums):
    """The calls of a version of an agent."""

    agent_version: str | None


class OneAgent(AgentSums):
    """The calls of an agent."""

    agent: str | None
    """null: the calls that name none."""
    tools: list[AgentTool]
    versions: list[AgentVersion]


class AgentList(Page[OneAgent], QueriedBounds):
    """The agents of a range, most calls first."""


class OneConversation(Answer):
    """The calls of a conversation."""

    run_id: str
    traces: int
    first_at: datetime
    """When the first of the calls started."""
    last_at: datetime
    """The last start or end of a call."""
    calls: int
    failed: int
    violations: int
    tokens: int


class ConversationList(Page[OneConversation], QueriedBounds):
    """The conversations of a range, the latest first."""


@reads(router, "/agents", AgentList, tag="figures", problems=_PROBLEMS)
def list_agents(request: HttpRequest, params: Query[CallSumListParams]) -> dict[str, Any]:
    """List the agents of a range with their tools and versions, most calls first."""
    page, now = FigurePage.read("agents", params), timezone.now()
    wanted = params.read_any_calls(request, page.of, now)
    agents, searched_until = agents_of_query(wanted, page.of, now)
    return {
        **bounds(page.of),
        "searched_until": searched_until and utc(searched_until),
        **page.members([_agent(one) for one in agents]),
    }


@reads(router, "/conversations", ConversationList, tag="figures", problems=_PROBLEMS)
def list_conversations(request: HttpRequest, params: Query[CallSumListParams]) -> dict[str, Any]:
    """List the conversations of a range, the latest first: the calls that share a run id."""
    page, now = FigurePage.read("conversations", params), timezone.now()
    wanted = params.read_any_calls(request, page.of, now)
    conversations, searched_until = conversations_of_query(wanted, now)
    return {
        **bounds(page.of),
        "searched_until": searched_until and utc(searched_until),
        **page.members([_conversation(one) for one in conversations]),
    }


def _agent(one: Agent) -> dict[str, Any]:
    return {
        "agent": one.total.name or None,
        **_sums(one.total),
        "tools": _parts(one.tools, "tool_name"),
        "versions": _parts(one.versions, "agent_version"),
    }


def _parts(parts: Sequence[AgentFigures], name: str) -> list[dict[str, Any]]:
    return [{name: one.name or None, **_sums(one)} for one in parts]


def _sums(one: AgentFigures) -> dict[str, Any]:
    return {
        "calls": one.calls,
        "failed": one.failed,
        "violating": one.violating,
        "refused": one.refused,
        "tokens": int(one.tokens),
        "last_at": utc(one.last_at),
        "p50_ms": None if one.p50_us is None else one.p50_us / 1000,
        "p95_ms": None if one.p95_us is None else one.p95_us / 1000,
    }


def _conversation(one: Conversation) -> dict[str, Any]:
    return {
        "run_id": one.run_id,
        "traces": one.traces,
        "first_at": utc(one.first_at),
        "last_at": utc(one.last_at),
        "calls": one.calls,
        "failed": one.failed,
        "violations": one.violations,
        "tokens": one.tokens,
    }
