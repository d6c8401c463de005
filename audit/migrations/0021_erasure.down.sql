REVOKE SELECT ON otlp_span FROM tooltrail_keeper;
REVOKE SELECT, UPDATE (expected, received) ON violation FROM tooltrail_keeper;
REVOKE UPDATE (call_id, error_message, idempotency_key) ON invocation FROM tooltrail_keeper;
DROP TABLE erasure_call, erasure;
