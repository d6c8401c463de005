-- Failed calls, and those that break their schema, are few and most of what is searched for:
-- indexes of them alone, so that no search for one walks over all that went well; of a tool, too,
-- or a walk along either would throw most of what it reads away.
CREATE INDEX invocation_failed_idx ON invocation (tenant_id, started_at, invocation_id)
    WHERE state = 'failed';
CREATE INDEX invocation_tool_failed_idx
    ON invocation (tenant_id, tool_name, started_at, invocation_id) WHERE state = 'failed';
CREATE INDEX invocation_violating_idx ON invocation (tenant_id, started_at, invocation_id)
    WHERE violation_count > 0;
CREATE INDEX invocation_tool_violating_idx
    ON invocation (tenant_id, tool_name, started_at, invocation_id) WHERE violation_count > 0;
