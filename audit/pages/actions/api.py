"""The audit log over the API: actions of people and programs."""

from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from audit.exports.actions import document
from audit.pages.show.figure_schemas import ActionList
from audit.pages.show.ranges import ListRangeParams
from audit.pages.show.router import router
from audit.queries.actions import ActionFilter, action_page
from audit.queries.cursor import parse_cursor
from tenants.api_auth import ApiRequest
from tenants.api_reads import reads, seal, unseal


class ActionListParams(ListRangeParams):
    """Which actions."""

    actor: str = ""
    """Only actions of this actor: a user's name, or a key as the audit log names it."""
    verb: str = Field("", examples=["key.create", "session."])
    """Only this verb. With a dot at the end: all verbs with this prefix."""
    subject: str = ""
    """Only actions whose subject contains this text."""


@reads(
    router,
    "/actions",
    ActionList,
    tag="actions",
    problems=("range", "cursor", "limit"),
)
def list_actions(request: HttpRequest, params: Query[ActionListParams]) -> dict[str, Any]:
    """List the audit log, newest first: actions of people and programs, with actor and subject.

    Details and the texts of payload searches may quote payloads, so they also need the scope
    `payloads`.
    """
    wanted = ActionFilter(params.actor, params.verb, params.subject, *params.read_span())
    with_payloads = cast(ApiRequest, request).auth.sees_payloads
    before = unseal("actions", params.cursor, lambda place: parse_cursor("\n".join(place), UUID))
    page = action_page(wanted, before=before, size=params.limit)
    documents = [document(action) for action in page.actions]
    if not with_payloads:
        for one in documents:
            one["details"] = None
            if one["verb"].startswith("payload."):
                one["subject"] = None
    return {
        "items": documents,
        "next": page.older and seal("actions", page.older),
        "withheld": not with_payloads,
    }
