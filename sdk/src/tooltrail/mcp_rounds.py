"""The MCP calls that have not ended: those that wait for input, and those that work as tasks.

Owns which later request goes on with which call. `mcp_results` reads what servers answer.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, Final, Literal

from tooltrail.mcp_results import ResultDocument, read_result
from tooltrail.recording import Call

OF_TASKS: Final = ("tasks/get", "tasks/cancel", "tasks/result")
"""The requests about a task. They name it by their parameter `taskId`."""
_OPEN_MAX: Final = 1000
_BRIEF_CHARACTERS: Final = 200


def brief(text: str) -> str:
    """What to remember instead of a text of any length: the text, or its digest if it is long."""
    if len(text) <= _BRIEF_CHARACTERS:
        return text
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class Rounds:
    """The open calls of one process. Not locked: its user makes one call at a time."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Open] = {}
        """By tool and request state, or by "" and task id."""

    def resume(self, tool: str, params: dict[str, Any]) -> Call | None:
        """The call that a request goes on with; None if it begins a call of its own."""
        waiting = self._open.pop((tool, brief(str(params.get("requestState")))), None)
        return None if waiting is None else waiting.call

    def keep(self, call: Call, tool: str, document: ResultDocument | None) -> None:
        """Remember a call whose result says that it has not ended. Others are ignored."""
        result = None if document is None else read_result(document)
        if document is None or result is None or result.call_state in (None, "cancelled"):
            return
        task_id = (document.get("task") or document).get("taskId")
        which = document.get("requestState") if task_id is None else task_id
        if isinstance(which, str):
            key = (tool if task_id is None else "", brief(which))
            self._open[key] = _Open(None if key in self._open else call, result.call_state)
        if len(self._open) > _OPEN_MAX:
            del self._open[next(iter(self._open))]

    def follow(self, task_id: str, method: str, document: ResultDocument | None) -> None:
        """Record what a task does, and its end."""
        key = ("", brief(task_id))
        task = self._open.get(key)
        if task is None or task.call is None or document is None:
            return
        ended = _end_of(document, method)
        if ended is not None:
            del self._open[key]
            task.call.finish(ended)
            return
        is_asking = document.get("status") == "input_required"
        state: Literal["waiting", "working"] = "waiting" if is_asking else "working"
        if state != task.state:
            task.state = state
            task.call.report(state)


@dataclass(slots=True)
class _Open:
    """A call that has not ended."""

    call: Call | None
    """None if two calls have the same request state: nobody knows whose the next round is."""
    state: str | None


def _end_of(document: ResultDocument, method: str) -> ResultDocument | None:
    """The end of a call in an answer about its task; None if it is not known yet."""
    if method == "tasks/result":
        return document
    match document.get("status"), document.get("result"):
        case "failed" | "cancelled", _:
            return ResultDocument(task=document)
        case "completed", dict(result):
            return ResultDocument(result)
    return None
