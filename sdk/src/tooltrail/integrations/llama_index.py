"""LlamaIndex: a span handler of its instrumentation.

get_dispatcher().add_span_handler(TooltrailSpanHandler(trail))
"""

from typing import Any

from llama_index.core.tools import BaseTool, ToolOutput
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr

from tooltrail.integrations.running import Running
from tooltrail.trail import Trail


class TooltrailSpanHandler(BaseSpanHandler[BaseSpan]):
    """Records the tools that any agent or program of this process calls.

    LlamaIndex's spans name neither agent, model nor conversation: `Trail.trace` around a run does.
    """

    _running: Running = PrivateAttr()
    _tools: dict[str, str] = PrivateAttr(default_factory=dict)  # open span of a tool: its name

    def __init__(self, trail: Trail) -> None:
        super().__init__()
        self._running = Running(trail)

    @classmethod
    def class_name(cls) -> str:
        """The name of this class for the framework."""
        return "TooltrailSpanHandler"

    def new_span(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **rest: Any,
    ) -> BaseSpan | None:
        """Record that a tool is about to run, if this is the span of a tool."""
        with self._running.harmless():
            method = id_.partition(".")[2].partition("-")[0]
            if not isinstance(instance, BaseTool) or method not in ("call", "acall"):
                return None
            tool = instance.metadata.get_name()
            if self._tools.get(parent_span_id or "") == tool:
                return None  # one form of a tool only passes the call on to the other
            self._tools[id_] = tool
            arguments = bound_args.arguments
            args = dict(arguments.get("kwargs") or {})
            given = arguments.get("args") or ()
            if given:
                args["args" if args else "input"] = given[0] if len(given) == 1 else given
            self._running.begin(id_, tool, args)
            return BaseSpan(id_=id_, parent_id=parent_span_id)
        return None

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **rest: Any
    ) -> BaseSpan | None:
        """Record what the tool returned."""
        self._tools.pop(id_, None)
        if isinstance(result, ToolOutput):
            if result.is_error:
                self._running.fail(id_, result.exception or str(result.content))
            else:
                self._running.end(id_, result.raw_output)
        else:
            self._running.end(id_, result)
        return self.open_spans.get(id_)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        err: BaseException | None = None,
        **rest: Any,
    ) -> BaseSpan | None:
        """Record what the tool raised."""
        self._tools.pop(id_, None)
        self._running.fail(id_, err or "the span was dropped")
        return self.open_spans.get(id_)
