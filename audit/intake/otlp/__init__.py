"""Tool calls from OpenTelemetry traces: `POST /v1/traces` (OTLP/HTTP).

`protobuf` and `otlp_json` read a body into `spans`; `conventions` tells which of them are tool
calls and what they say; `mapping` makes events of those, `joining` finds spans of the same call
that came in other requests, `recording` stores what results; `views` and `answers` speak HTTP.
"""
