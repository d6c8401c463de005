-- The names that calls were made under, registered or not; the worker derives them from the index.

CREATE TABLE observed_tool (
    tenant_id uuid NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    first_seen_at timestamptz NOT NULL,  -- to the hour
    last_seen_at timestamptz NOT NULL,
    CONSTRAINT observed_tool_pkey PRIMARY KEY (tenant_id, tool_name),
    CONSTRAINT observed_tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE observed_tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON observed_tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON observed_tool FROM tooltrail_app;
