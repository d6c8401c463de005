"""LangChain tools under OpenInference's instrumentation."""

from contextlib import suppress

from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)


@tool
def get_weather(city: str) -> dict[str, float]:
    """The weather of a city."""
    return {"celsius": 22.5}


@tool
def plan_trip(to: str) -> str:
    """Plan a trip."""
    weather = RunnableLambda(lambda _: get_weather.invoke({"city": to}), name="look_outside")
    return f"{to}: {weather.invoke(None)['celsius']}"


@tool
def book_flight(to: str) -> str:
    """Book a flight."""
    raise ValueError("no such flight")


def answer(question: str) -> str:
    call = {"name": "plan_trip", "args": {"to": "London"}, "id": "call_1", "type": "tool_call"}
    plan_trip.invoke(call)
    with suppress(ValueError):
        book_flight.invoke({"to": "London"})
    return "done"


metadata = {"session_id": "conversation-7"}
RunnableLambda(answer, name="concierge").invoke("Plan a trip.", {"metadata": metadata})
provider.shutdown()
