"""Calls as a pair made them and as Tooltrail shows them, in one form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tooltrail.mcp_results import read_result


@dataclass(frozen=True)
class SeenCall:
    """A call. `parent` is the tool of the call around it."""

    tool: str
    args: Any = None
    state: str = "ok"
    result: Any = None
    message: str | None = None
    parent: str | None = None
    agent: str | None = None
    model: str | None = None
    conversation: str | None = None


def of_events(events: Sequence[Mapping[str, Any]]) -> list[SeenCall]:
    """The calls in the events of an executor. Those that were refused have the state `refused`."""
    starts = {each["invocation_id"]: each for each in events if each["type"].endswith("Start")}
    ends = {each["invocation_id"]: each for each in events if each["type"].endswith("End")}
    ran = [
        _call(
            start,
            ends.get(invocation_id),
            starts.get(start.get("parent_invocation_id")),
            start.get("context", {}),
        )
        for invocation_id, start in starts.items()
    ]
    decided = {each["invocation_id"]: each for each in events if each["type"].endswith("Decision")}
    refused = [each for key, each in decided.items() if key not in starts]
    return ran + [SeenCall(each["tool_name"], each.get("args"), "refused") for each in refused]


def of_documents(documents: Iterable[Mapping[str, Any]]) -> list[SeenCall]:
    """The calls in documents of `/api/v1/calls/{invocation_id}`."""
    by_id = {each["invocation_id"]: each for each in documents}
    return [
        _call(
            each["start"]["event"],
            each["end"] and each["end"]["event"],
            by_id.get(each["parent_invocation_id"]),
            each,
        )
        for each in by_id.values()
    ]


def _call(start: Any, end: Any, parent: Any, context: Mapping[str, Any]) -> SeenCall:
    output = (end or {}).get("output") or {}
    result = output.get("data")
    if end and "output_type" in end and (of_mcp := read_result(result)) is not None:
        result = of_mcp.value if of_mcp.source else (of_mcp.message or None)
    state = "open" if end is None else "failed" if end["is_error"] else "ok"
    return SeenCall(
        tool=start["tool_name"],
        args=start["args"],
        state=(end or {}).get("call_state") or state,
        result=result,
        message=(output.get("error") or {}).get("message"),
        parent=parent and parent["tool_name"],
        agent=context.get("agent"),
        model=context.get("model"),
        conversation=start.get("run_id"),
    )
