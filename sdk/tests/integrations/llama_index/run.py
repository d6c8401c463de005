"""LlamaIndex's function agent with a scripted model."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from pydantic import PrivateAttr
from tooltrail.integrations.llama_index import TooltrailSpanHandler


class Scripted(FunctionCallingLLM):
    _turns: list[list[ToolSelection]] = PrivateAttr()

    def __init__(self, *turns: list[ToolSelection]) -> None:
        super().__init__()
        self._turns = list(turns)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="script-1")

    def _prepare_chat_with_tools(self, tools: Any, **rest: Any) -> dict[str, Any]:
        return {"messages": []}

    def get_tool_calls_from_response(self, response: Any, **rest: Any) -> list[ToolSelection]:
        return response.message.additional_kwargs.get("calls", [])

    def _answer(self) -> ChatResponse:
        calls = self._turns.pop(0) if self._turns else []
        message = ChatMessage(role="assistant", content="done", additional_kwargs={"calls": calls})
        return ChatResponse(message=message, delta="done")

    async def astream_chat_with_tools(self, *args: Any, **rest: Any) -> Any:
        async def stream() -> Any:
            yield self._answer()

        return stream()

    async def achat_with_tools(self, *args: Any, **rest: Any) -> ChatResponse:
        return self._answer()

    def chat(self, messages: Sequence[ChatMessage], **rest: Any) -> Any:
        raise NotImplementedError

    achat = astream_chat = stream_chat = complete = acomplete = stream_complete = chat
    astream_complete = chat


def call(name: str, n: int, /, **args: Any) -> ToolSelection:
    return ToolSelection(tool_id=f"call_{n}", tool_name=name, tool_kwargs=args)


trail = stage.make_trail()
get_dispatcher().add_span_handler(TooltrailSpanHandler(trail))


async def helper(task: str) -> str:
    """Ask another agent."""
    inner = FunctionAgent(
        name="inner", llm=Scripted([call("lookup", 9, key="k")]), tools=[stage.lookup]
    )
    await inner.run(task)
    return "value of k"


async def ask(*turns: list[ToolSelection]) -> None:
    agent = FunctionAgent(
        name="concierge",
        llm=Scripted(*turns),
        tools=[stage.get_weather, helper, stage.report, stage.boom, stage.slow],
    )
    await agent.run("go")


async def main() -> None:
    with trail.trace(run_id="conv-1"):
        await ask(*stage.turns(call))
    await stage.cancel(ask([call("slow", 6)]))
    await asyncio.sleep(0.2)


asyncio.run(main())
beside = stage.Beside()
get_dispatcher().span_handlers = []
LlamaIndexInstrumentor().instrument(tracer_provider=beside.tracer_provider)
get_dispatcher().add_span_handler(TooltrailSpanHandler(beside.trail))
asyncio.run(ask([call("get_weather", 1, city="London")]))
stage.finish(trail, beside)
