-- Who was invited and has not answered yet. Only the digest of a link's secret is stored.
-- Distributed by tenant_id, beside membership. Holds no payload: erasures do not touch it, and it
-- goes with its tenant. What is over is deleted a month after it expired (tenants/invitations.py);
-- who invited whom, who accepted and what was revoked stays in the ledger, as actions.

CREATE TABLE invitation (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    label varchar(150) NOT NULL,         -- who it is for, in the admin's words
    role varchar(16) NOT NULL,
    token_sha256 bytea NOT NULL,
    created_at timestamptz NOT NULL,
    created_by_id bigint,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT invitation_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT invitation_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE,
    CONSTRAINT invitation_created_by_fk
        FOREIGN KEY (created_by_id) REFERENCES app_user (id) ON DELETE SET NULL,
    CONSTRAINT invitation_role_check CHECK (role IN ('viewer', 'editor', 'auditor', 'admin')),
    CONSTRAINT invitation_token_check CHECK (octet_length(token_sha256) = 32),
    CONSTRAINT invitation_end_check CHECK (accepted_at IS NULL OR revoked_at IS NULL)
);
ALTER TABLE invitation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON invitation
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- Of an invitation only its end is written: nobody turns one into another.
REVOKE UPDATE ON invitation FROM tooltrail_app;
GRANT UPDATE (accepted_at, revoked_at) ON invitation TO tooltrail_app;

-- Where a new session opens; NULL: in the tenant they have been a member of the longest.
ALTER TABLE app_user ADD last_tenant_id uuid REFERENCES tenant (id) ON DELETE SET NULL;
