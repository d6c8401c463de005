-- Uses of the tools of /mcp, counted until the worker records them.
CREATE TABLE mcp_use (
    tenant_id uuid NOT NULL,
    key_id text NOT NULL,
    tool text NOT NULL,
    minute timestamptz NOT NULL,         -- its start
    use_count bigint NOT NULL,
    digest text NOT NULL,                -- of the arguments of all uses: audit.work.mcp_uses
    clients text[] NOT NULL,             -- names that the clients gave, the first five
    CONSTRAINT mcp_use_pkey PRIMARY KEY (tenant_id, key_id, tool, minute),
    CONSTRAINT mcp_use_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE mcp_use ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON mcp_use
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
