DROP POLICY nothing_left ON violation_day;
REVOKE DELETE ON violation_day FROM tooltrail_app;

DROP POLICY merged_elsewhere ON invocation;
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

DROP POLICY found_in_spans ON violation;
REVOKE DELETE ON violation FROM tooltrail_app;
