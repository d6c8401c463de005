"""Tool calls from OpenTelemetry traces and logs (OTLP), over HTTP and gRPC.

`protobuf` and `otlp_json` read a body into spans; `logs` makes spans of log records. `conventions`
recognizes tool calls. `facts` reads their attributes, and `wrappers` takes off what frameworks add.
`mapping` makes events of them. `joining` finds spans of the same call from other requests,
`executors` matches calls that executors report themselves. `recording` stores the result, and
`skipped` counts what became no call. `exports` takes a request of one of the `signals`; `views`
handles HTTP, `rpc` gRPC, and `answers` both.
"""
