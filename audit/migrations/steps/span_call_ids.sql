-- Spans right below another one, by the id of their call, too. Building locks the table for writers
-- (about a second per million spans).
DROP INDEX otlp_span_parent_idx;
CREATE INDEX otlp_span_parent_idx ON otlp_span (tenant_id, started_on, parent_uuid, tool_call_id);
