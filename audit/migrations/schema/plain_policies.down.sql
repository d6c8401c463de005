DROP POLICY found_by_server ON violation;
CREATE POLICY found_in_spans ON violation AS RESTRICTIVE FOR DELETE USING (
    found_by = 'server'
    AND EXISTS (
        SELECT FROM otlp_span s
        WHERE s.tenant_id = violation.tenant_id
          AND s.started_on = violation.started_on
          AND s.span_uuid = violation.invocation_id
          AND s.kind >= 0
    )
);
DROP POLICY absorbed ON invocation;
ALTER TABLE invocation DROP COLUMN absorbed;
CREATE POLICY merged_elsewhere ON invocation AS RESTRICTIVE FOR DELETE USING (
    EXISTS (
        SELECT FROM otlp_span s
        WHERE s.tenant_id = invocation.tenant_id
          AND s.started_on = invocation.started_on
          AND s.span_uuid = invocation.invocation_id
          AND s.invocation_id <> invocation.invocation_id
    )
    AND NOT EXISTS (
        SELECT FROM violation v
        WHERE v.tenant_id = invocation.tenant_id
          AND v.started_on = invocation.started_on
          AND v.invocation_id = invocation.invocation_id
          AND v.found_by <> 'server'
    )
);
