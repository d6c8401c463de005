"""A draft that a tool's stored outputs violate, and a replay that detects it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from audit.queries.replays import ReplayRange
from audit.work.replay.job import Proposal, start_replay
from tests.support.factories import Cast
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract

_MEMBER = "a member of that name " * 12


def drafted_and_replayed(cast: Cast, tool: Tool) -> UUID:
    """Begin a draft that asks for more than the tool returns, and a replay. Needs the scope."""
    output: dict[str, Any] = {"type": "object", "required": [_MEMBER, "at"]}
    contract = ToolContract(
        name=tool.name, description=_MEMBER, input_schema={"type": "object"}, output_schema=output
    )
    draft = create_draft(tool, contract, Publisher(cast.admin))
    now = datetime.now(UTC)
    calls = ReplayRange(tool.name, now - timedelta(days=1), now + timedelta(seconds=1))
    proposal = Proposal(draft.revision, draft.input_schema, output)
    return start_replay(tool, proposal, calls, 100, cast.admin.username).id
