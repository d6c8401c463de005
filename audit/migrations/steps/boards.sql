CREATE TABLE board (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id bigint,
    name text NOT NULL,
    range text NOT NULL,
    panels jsonb NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    CONSTRAINT board_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT board_tenant_user_name_uniq UNIQUE NULLS NOT DISTINCT (tenant_id, user_id, name),
    CONSTRAINT board_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT board_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
ALTER TABLE board ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON board
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
