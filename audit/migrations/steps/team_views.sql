ALTER TABLE saved_view
    ADD COLUMN page text DEFAULT 'calls' NOT NULL,
    ADD COLUMN is_shared boolean DEFAULT FALSE NOT NULL;
CREATE TABLE page_choice (
    tenant_id uuid NOT NULL,
    user_id bigint NOT NULL,
    page text NOT NULL,
    columns text[],
    default_view uuid,
    CONSTRAINT page_choice_pkey PRIMARY KEY (tenant_id, user_id, page),
    CONSTRAINT page_choice_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT page_choice_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
ALTER TABLE page_choice ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON page_choice
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
