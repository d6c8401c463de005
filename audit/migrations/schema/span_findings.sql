-- Violations in the outputs of spans. A fuller account of such a call replaces the earlier account
-- and its violations, and a call that was merged into another one goes with its violations.

-- The application may delete what the server found in calls made of spans, and nothing else: the
-- violations that an executor reports, and those of an executor's calls, stay.
GRANT DELETE ON violation TO tooltrail_app;
CREATE POLICY found_in_spans ON violation AS RESTRICTIVE FOR DELETE USING (
    found_by = 'server'
    AND EXISTS (
        SELECT FROM otlp_span s
        WHERE s.tenant_id = violation.tenant_id
          AND s.started_on = violation.started_on
          AND s.span_uuid = violation.invocation_id
          AND s.kind >= 0  -- no executor's call (audit.events.spans.EXECUTOR)
    )
);

DROP POLICY merged_elsewhere ON invocation;
CREATE POLICY merged_elsewhere ON invocation AS RESTRICTIVE FOR DELETE USING (
    EXISTS (
        SELECT FROM otlp_span s
        WHERE s.tenant_id = invocation.tenant_id
          AND s.started_on = invocation.started_on
          AND s.span_uuid = invocation.invocation_id
          AND s.invocation_id <> invocation.invocation_id
    )
    -- An executor may give a call the id of a span. What it reported of its call stays.
    AND NOT EXISTS (
        SELECT FROM violation v
        WHERE v.tenant_id = invocation.tenant_id
          AND v.started_on = invocation.started_on
          AND v.invocation_id = invocation.invocation_id
          AND v.found_by <> 'server'
    )
);

-- The application may delete the row of a kind of which no violation is left on its day.
GRANT DELETE ON violation_day TO tooltrail_app;
CREATE POLICY nothing_left ON violation_day AS RESTRICTIVE FOR DELETE USING (violation_count = 0);
