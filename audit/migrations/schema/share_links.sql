-- Links by which members share what a page shows.

-- share_link: a link to a call, a trace, a page with figures of a range, or a report. Who has the link
-- can open it until it expires or is revoked; the signature in it is not stored.
--
-- Retention: kept.
-- Erasure: no effect; it holds the address of a page, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE share_link (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    address text NOT NULL,               -- path and parameters of the page, times as instants
    is_anonymous boolean NOT NULL,       -- opens without a sign-in, if the tenant allows that
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
    expires_at timestamptz NOT NULL,
    payloads_by text,                    -- who allowed it to show payloads, and why
    payloads_reason text,
    revoked_at timestamptz,
    revoked_by text,
    opened_count bigint NOT NULL,
    opened_at timestamptz,               -- the last time
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
-- A link stays on record; what it leads to never changes.
REVOKE UPDATE, DELETE ON share_link FROM tooltrail_app;
GRANT UPDATE (payloads_by, payloads_reason, revoked_at, revoked_by, opened_count, opened_at)
    ON share_link TO tooltrail_app;
