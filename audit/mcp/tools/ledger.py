"""The tool that proves what is in the ledger."""

import copy
from dataclasses import replace
from typing import Any, Final

from audit.mcp.caller import McpRequest
from audit.mcp.tool import Tool, ToolParams
from audit.pages.ledger.api import InclusionParams, prove_inclusion
from audit.pages.ledger.schemas import Inclusion
from tenants.api_reads import members_of


class ProveCallParams(ToolParams, InclusionParams):
    """Which entry: an index, or a call and one of its events."""


def _prove_call(request: McpRequest, params: ProveCallParams) -> dict[str, Any]:
    # The proof is of hashes: who proves an event has it from get_call.
    without_payloads = copy.copy(request)
    without_payloads.auth = replace(request.auth, sees_payloads=False)
    return members_of(prove_inclusion, without_payloads, params=params)


PROVE_CALL: Final = Tool(
    "prove_call",
    "Prove a call",
    "Prove that the signed ledger has the start or end of a call: leaf, audit path (RFC 6962) and"
    " signed checkpoint.",
    ProveCallParams,
    Inclusion,
    _prove_call,
)
