"""Hand a failure to an agent, over the API: the text that the pages copy."""

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.pages.calls import panel
from audit.pages.calls.api import CallParams, call_of
from audit.pages.calls.handoff import query_of, text_about
from audit.pages.show.api_query import parsed_terms
from audit.pages.show.router import router
from audit.queries.call_list import call_page
from audit.queries.calls import CallDetail, call_detail
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, Params, reads


class HandoffParams(Params):
    """Which calls."""

    q: str = Field(examples=["tool:search violation:type"])
    """A query as on the Calls page. The text is about the newest call that it finds."""


class Handoff(Answer):
    """A call as text for an agent that shall find the cause and mend it."""

    invocation_id: UUID
    query: str
    """Finds more calls like it."""
    text: str
    """Finding, contract, example, the query, and how to check a change. What tools and agents
    wrote is between two lines with a mark that is another one in each answer.
    """
    withheld: bool


@reads(router, "/calls/handoff", Handoff, tag="calls", problems=("query", "not_found"))
def hand_off_newest(request: HttpRequest, params: Query[HandoffParams]) -> dict[str, Any]:
    """Get the newest call that a query finds as text for an agent that mends it.

    Payloads also need the scope `payloads`.
    """
    query, now = parsed_terms(request, params.q), timezone.now()
    newest = next(iter(call_page(query.wanted, now=now, size=1).calls), None)
    call = None if newest is None else call_detail(newest.started_on, newest.invocation_id)
    if call is None:
        raise ProblemError("not_found", "The query finds no call.")
    return _handoff(request, call, str(query), now)


@reads(router, "/calls/{uuid:invocation_id}/handoff", Handoff, tag="calls", problems=("not_found",))
def hand_off_call(
    request: HttpRequest, invocation_id: Path[UUID], params: Query[CallParams]
) -> dict[str, Any]:
    """Get a call as text for an agent that mends it. Payloads also need the scope `payloads`."""
    return _handoff(request, call_of(invocation_id, params.day), "", timezone.now())


def _handoff(request: HttpRequest, call: CallDetail, query: str, now: datetime) -> dict[str, Any]:
    key = cast(ApiRequest, request).auth
    shown = panel.gather(call, now, with_payloads=key.sees_payloads)
    query = query or query_of(shown)
    return {
        "invocation_id": call.invocation_id,
        "query": query,
        "text": text_about(request, key.tenant_id, shown, query),
        "withheld": shown.is_withheld,
    }
