-- Tools that are meant to be called again and again with the same arguments: repeats leave them out.

CREATE TABLE polling_tool (
    tenant_id uuid NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT polling_tool_pkey PRIMARY KEY (tenant_id, tool_name),
    CONSTRAINT polling_tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE polling_tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON polling_tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
