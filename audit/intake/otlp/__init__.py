"""Tool calls from OpenTelemetry traces and logs: `POST /v1/traces`, `/v1/logs` (OTLP/HTTP).

`protobuf` and `otlp_json` read a body into spans; `logs` makes spans of log records. `conventions`
recognizes tool calls. `facts` reads their attributes, and `wrappers` takes off what frameworks add.
`mapping` makes events of them. `joining` finds spans of the same call from other requests,
`executors` matches calls that executors report themselves. `recording` stores the result. `exports`
takes a request of one of the `signals`; `views` and `answers` handle HTTP.
"""
