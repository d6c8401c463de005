REVOKE UPDATE (invocation_id, call_started_at) ON otlp_span FROM tooltrail_app;
DROP POLICY nothing_left ON trace;
DROP POLICY merged_elsewhere ON invocation;
REVOKE DELETE ON invocation, trace FROM tooltrail_app;
