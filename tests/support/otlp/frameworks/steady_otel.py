"""Ends one tool span after the other for so many seconds and prints how many it made."""

import json
import sys
import time

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=200))
tracer = provider.get_tracer("steady")
deadline = time.monotonic() + float(sys.argv[1])
count = 0
while time.monotonic() < deadline:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "by_otlp",
        "gen_ai.tool.call.arguments": json.dumps({"n": count}),
    }
    with tracer.start_as_current_span("execute_tool by_otlp", attributes=attributes):
        count += 1
    time.sleep(0.01)
provider.shutdown()
sys.stdout.write(f"{count}\n")
