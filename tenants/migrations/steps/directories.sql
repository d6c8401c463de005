CREATE TABLE directory_user (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    identity_provider_id uuid NOT NULL,
    external_id varchar(191),
    user_name varchar(200) NOT NULL,
    display_name varchar(200) NOT NULL,
    is_active boolean,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT directory_user_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT directory_user_external_id_uniq
        UNIQUE (tenant_id, identity_provider_id, external_id),
    CONSTRAINT directory_user_tenant_fk
        FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE,
    CONSTRAINT directory_user_provider_fk FOREIGN KEY (tenant_id, identity_provider_id)
        REFERENCES identity_provider (tenant_id, id)
);
CREATE UNIQUE INDEX directory_user_name_uniq
    ON directory_user (tenant_id, identity_provider_id, lower(user_name));
ALTER TABLE directory_user ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON directory_user
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE ON directory_user FROM tooltrail_app;
GRANT UPDATE (external_id, user_name, display_name, is_active, changed_at)
    ON directory_user TO tooltrail_app;

CREATE TABLE directory_group (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    identity_provider_id uuid NOT NULL,
    external_id varchar(191),
    display_name varchar(200) NOT NULL,
    members uuid[] NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT directory_group_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT directory_group_tenant_fk
        FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE,
    CONSTRAINT directory_group_provider_fk FOREIGN KEY (tenant_id, identity_provider_id)
        REFERENCES identity_provider (tenant_id, id)
);
ALTER TABLE directory_group ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON directory_group
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE ON directory_group FROM tooltrail_app;
GRANT UPDATE (external_id, display_name, members, changed_at) ON directory_group TO tooltrail_app;
