"""An agent instrumented by hand with the OpenTelemetry SDK, as the GenAI conventions say.

Exports as OTEL_EXPORTER_OTLP_* and the first argument say: `protobuf` or `json`.
"""

import json
import sys

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if sys.argv[1] == "json":
    from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

provider = TracerProvider(resource=Resource.create({"service.name": "weather-agent"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("my-agent", "1.0")


def call(tool, arguments, result=None, error=None):
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"call_{tool}",
        "gen_ai.tool.call.arguments": json.dumps(arguments),
    }
    with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes) as span:
        if tool == "plan_trip":
            with tracer.start_as_current_span("chat gpt-5"):
                call("get_weather", {"city": "London"}, {"celsius": 22.5})
        if error is not None:
            span.set_attribute("error.type", error)
            span.set_status(trace.StatusCode.ERROR, "no such flight")
        else:
            span.set_attribute("gen_ai.tool.call.result", json.dumps(result))


about = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": "traveller",
    "gen_ai.conversation.id": "conversation-7",
    "gen_ai.request.model": "gpt-5",
}
with tracer.start_as_current_span("invoke_agent traveller", attributes=about):
    call("plan_trip", {"to": "London"}, {"days": 3})
    call("book_flight", {"to": "London"}, error="timeout")
provider.shutdown()
