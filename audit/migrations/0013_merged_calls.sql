-- Of three layers that report one call the middle one may come last: two stored calls become one.
-- What may go is decided here, too: a call whose span is another one's now, and without violations,
-- and a trace's day on which nothing is left.
GRANT DELETE ON invocation, trace TO tooltrail_app;
CREATE POLICY merged_elsewhere ON invocation AS RESTRICTIVE FOR DELETE USING (
    violation_count = 0
    AND EXISTS (
        SELECT FROM otlp_span s
        WHERE s.tenant_id = invocation.tenant_id
          AND s.started_on = invocation.started_on
          AND s.span_uuid = invocation.invocation_id
          AND s.invocation_id <> invocation.invocation_id
    )
);
CREATE POLICY nothing_left ON trace AS RESTRICTIVE FOR DELETE USING (started_count = 0);
GRANT UPDATE (invocation_id, call_started_at) ON otlp_span TO tooltrail_app;
