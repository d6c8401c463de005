-- skipped_span: spans and log records that arrived and became no call, by name and reason. A page says
-- with them why calls are missing.
--
-- Retention: rows are deleted 30 days after they last arrived, whatever the tenant's settings are.
-- Erasure: no effect; it holds names of operations, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE skipped_span (
    tenant_id uuid NOT NULL,
    reason text COLLATE "C" NOT NULL,    -- audit.queries.skipped_spans.Reason, or why it was rejected
    service text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,     -- the instrumentation's name
    name text COLLATE "C" NOT NULL,
    span_count bigint NOT NULL,          -- a span that is sent twice counts twice
    first_at timestamptz NOT NULL,       -- when the first one arrived
    last_at timestamptz NOT NULL,
    CONSTRAINT skipped_span_pkey PRIMARY KEY (tenant_id, reason, service, scope, name),
    CONSTRAINT skipped_span_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE skipped_span ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON skipped_span
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
