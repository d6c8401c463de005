"""LangChain and LangGraph: a callback handler.

agent.invoke(question, {"callbacks": [TooltrailHandler(trail)]})
"""

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage

from tooltrail.integrations.running import Running, read_json
from tooltrail.trail import Trail


class TooltrailHandler(BaseCallbackHandler):
    """Records the tools of the runs that it is a callback of. One serves any number of runs.

    The trace is the outermost run, the agent its `lc_agent_name`, and the conversation the
    `thread_id` or `session_id` of the configuration. Raises nothing into the run.
    """

    run_inline = True  # in the context of the tool, so that calls inside it are nested

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)
        self._outermost: dict[UUID, UUID] = {}  # run: the outermost run around it
        self._models: dict[UUID, str] = {}  # outermost run: the model that was asked last

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **rest: Any,
    ) -> None:
        """Note which run this run belongs to."""
        self._outermost[run_id] = self._around(parent_run_id) or run_id

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **rest: Any) -> None:
        """Forget the run."""
        self._outermost.pop(run_id, None)
        self._models.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **rest: Any) -> None:
        """Forget the run."""
        self.on_chain_end(None, run_id=run_id)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **rest: Any,
    ) -> None:
        """Note the model that asks for the next tools."""
        outermost, name = self._around(parent_run_id), (metadata or {}).get("ls_model_name")
        if outermost is not None and name:
            self._models[outermost] = name

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        name: str | None = None,
        tool_call_id: str | None = None,
        **rest: Any,
    ) -> None:
        """Record that a tool is about to run."""
        with self._running.harmless():
            outermost = self._outermost[run_id] = self._around(parent_run_id) or run_id
            told = metadata or {}
            self._running.begin(
                run_id,
                name or (serialized or {}).get("name") or "tool",
                input_str if inputs is None else inputs,
                trace_id=outermost.hex,
                run_id=told.get("thread_id") or told.get("session_id"),
                tool_call_id=tool_call_id,
                context={
                    "agent": told.get("lc_agent_name"),
                    "model": self._models.get(outermost),
                },
            )

    def on_tool_end(self, output: Any, *, run_id: UUID, **rest: Any) -> None:
        """Record what the tool returned. A `ToolMessage` of an error fails the call."""
        with self._running.harmless():
            self._outermost.pop(run_id, None)
            message = output if isinstance(output, ToolMessage) else None
            if message is None:
                self._running.end(run_id, output)
            elif message.status == "error":
                self._running.fail(run_id, str(message.text))
            else:
                result = message.content if message.artifact is None else message.artifact
                self._running.end(run_id, read_json(result))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **rest: Any) -> None:
        """Record what the tool raised."""
        self._outermost.pop(run_id, None)
        self._running.fail(run_id, error)

    def _around(self, run_id: UUID | None) -> UUID | None:
        return None if run_id is None else self._outermost.get(run_id, run_id)
