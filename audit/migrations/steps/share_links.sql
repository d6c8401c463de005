CREATE TABLE share_link (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    address text NOT NULL,
    is_anonymous boolean NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    payloads_by text,
    payloads_reason text,
    revoked_at timestamptz,
    revoked_by text,
    opened_count bigint NOT NULL,
    opened_at timestamptz,
    CONSTRAINT share_link_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT share_link_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT share_link_kind_check CHECK (kind IN ('call', 'trace', 'chart', 'report')),
    CONSTRAINT share_link_payloads_check
        CHECK (num_nulls(payloads_by, payloads_reason) IN (0, 2)),
    CONSTRAINT share_link_revoked_check CHECK (num_nulls(revoked_at, revoked_by) IN (0, 2))
);
ALTER TABLE share_link ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON share_link
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON share_link FROM tooltrail_app;
GRANT UPDATE (payloads_by, payloads_reason, revoked_at, revoked_by, opened_count, opened_at)
    ON share_link TO tooltrail_app;
