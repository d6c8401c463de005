CREATE TABLE identity_provider (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(40) NOT NULL,
    kind varchar(8) NOT NULL,
    settings jsonb NOT NULL,
    secret_box bytea,
    role_by_group jsonb NOT NULL,
    default_role varchar(16),
    created_at timestamptz NOT NULL,
    disabled_at timestamptz,
    CONSTRAINT identity_provider_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT identity_provider_name_uniq UNIQUE (tenant_id, name),
    CONSTRAINT identity_provider_tenant_fk
        FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE,
    CONSTRAINT identity_provider_kind_check CHECK (kind IN ('oidc')),
    CONSTRAINT identity_provider_role_check
        CHECK (default_role IN ('viewer', 'editor', 'auditor', 'admin'))
);
ALTER TABLE identity_provider ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON identity_provider
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON identity_provider FROM tooltrail_app;
GRANT UPDATE (name, settings, secret_box, role_by_group, default_role, disabled_at)
    ON identity_provider TO tooltrail_app;

ALTER TABLE membership
    ADD COLUMN identity_provider_id uuid,
    ADD CONSTRAINT membership_provider_fk FOREIGN KEY (tenant_id, identity_provider_id)
        REFERENCES identity_provider (tenant_id, id),
    ADD CONSTRAINT membership_provider_check
        CHECK (identity_provider_id IS NULL OR NOT is_service);
