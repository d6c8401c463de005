"""Tool calls from OpenTelemetry traces: `POST /v1/traces` (OTLP/HTTP).

`protobuf` and `otlp_json` read a body into spans. `conventions` recognizes tool calls. `facts`
reads their attributes, and `wrappers` takes off what frameworks add. `mapping` makes events of
them. `joining` finds spans of the same call from other requests, `executors` matches calls that
executors report themselves. `recording` stores the result. `views` and `answers` handle HTTP.
"""
