-- Which span became which call, and who called whom: spans of one call come in requests of their
-- own, and the parents of a call need not be calls. Not the truth: that is in the log's events.
CREATE TABLE otlp_span (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    span_uuid uuid NOT NULL,             -- UUIDv5 of trace and span id
    parent_uuid uuid,                    -- of the span right above it; NULL at the top
    invocation_id uuid,                  -- the call it is of; NULL: it is no tool call
    call_started_at timestamptz,         -- that call's start
    tool_name text,
    tool_call_id text,
    scope text NOT NULL,                 -- the instrumentation's name
    kind integer NOT NULL,               -- client, server …, as OTLP numbers them
    CONSTRAINT otlp_span_pkey PRIMARY KEY (tenant_id, started_on, span_uuid),
    CONSTRAINT otlp_span_call_check
        CHECK (num_nulls(invocation_id, call_started_at, tool_name) IN (0, 3))
) PARTITION BY RANGE (started_on);
-- What was called by a span that comes later: exporters send what ends first.
CREATE INDEX otlp_span_parent_idx ON otlp_span (tenant_id, started_on, parent_uuid)
    WHERE invocation_id IS NOT NULL;

ALTER TABLE otlp_span ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON otlp_span
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- What is known of a span never changes.
REVOKE UPDATE, DELETE ON otlp_span FROM tooltrail_app;
