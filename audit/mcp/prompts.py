"""The prompt of `/mcp`: a failure as text for the agent that shall mend it."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from pydantic import Field

from audit.mcp.caller import McpRequest
from audit.mcp.tool import read_arguments, record_payload_read
from audit.pages.calls.api import CallParams
from audit.pages.calls.handoff_api import HandoffParams, hand_off_call, hand_off_newest
from config.http.problems import ProblemError
from tenants.api_reads import Params, members_of
from tenants.scope import tenant_scope

MEND_FAILURE: Final = "mend_failure"
_DESCRIPTION: Final = (
    "A failed call as one text: finding, contract, example, a query for more calls like it, and how"
    " to check a change. Give q or invocation_id."
)


class MendFailureParams(Params):
    """Which call: one of them."""

    q: str = Field("", max_length=2_000)
    """A query such as `tool:search state:error`: the newest call that it finds."""
    invocation_id: UUID | None = None
    """A call's id."""


def described() -> list[dict[str, Any]]:
    """The prompts as `prompts/list` names them."""
    return [
        {
            "name": MEND_FAILURE,
            "title": "Mend a failure",
            "description": _DESCRIPTION,
            "arguments": [
                {"name": name, "description": member.description, "required": False}
                for name, member in MendFailureParams.model_fields.items()
            ],
        }
    ]


def mend_failure(request: McpRequest, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The result of `prompts/get`. Raises ProblemError."""
    # Clients with a form send empty texts for what a person leaves out.
    given = {name: value for name, value in arguments.items() if value != ""}
    params = read_arguments(MendFailureParams, given)
    if (params.invocation_id is None) == (not params.q):
        raise ProblemError("parameter", "Set either q or invocation_id.")
    with tenant_scope(request.auth.tenant_id):
        if params.invocation_id is None:
            handoff = members_of(hand_off_newest, request, params=HandoffParams(q=params.q))
        else:
            handoff = members_of(
                hand_off_call, request, invocation_id=params.invocation_id, params=CallParams()
            )
        if not handoff["withheld"]:
            record_payload_read(request, f"{MEND_FAILURE} {handoff['invocation_id']}")
    return {
        "description": "A call that needs attention",
        "messages": [{"role": "user", "content": {"type": "text", "text": handoff["text"]}}],
    }
