-- A file of tools that somebody looks at before it is taken over; it goes when that is decided.
CREATE TABLE tool_import (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    created_by varchar(150) NOT NULL,    -- a user's name: who may go on with it
    document text NOT NULL,              -- as it was sent
    CONSTRAINT tool_import_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_import_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE tool_import ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_import
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE UPDATE ON tool_import FROM tooltrail_app;
