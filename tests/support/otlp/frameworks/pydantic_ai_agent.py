"""A pydantic-ai agent with its test model; the argument is its instrumentation's version."""

import sys
from contextlib import suppress

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.models.test import TestModel

provider = TracerProvider(resource=Resource.create({"service.name": "weather"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
settings = InstrumentationSettings(tracer_provider=provider, version=int(sys.argv[1]))
Agent.instrument_all(settings)

forecaster = Agent(TestModel(), name="forecaster")
assistant = Agent(TestModel(call_tools=["ask_forecaster", "get_weather"]), name="assistant")


@forecaster.tool_plain
def read_sensor(station: int) -> float:
    return 22.5


@assistant.tool_plain
def get_weather(city: str) -> dict[str, float]:
    return {"celsius": 22.5}


@assistant.tool_plain
async def ask_forecaster(question: str) -> str:
    return (await forecaster.run(question)).output


@assistant.tool_plain
def book_flight(to: str) -> str:
    raise RuntimeError("no such flight")


assistant.run_sync("What is the weather in London?")
failing = TestModel(call_tools=["book_flight"])
with suppress(RuntimeError):
    assistant.run_sync("Book a flight.", model=failing)
provider.shutdown()
