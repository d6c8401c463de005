-- Which processes are heard, and what is left of the quota of a key.
CREATE TABLE server_process (
    id uuid NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    kind text NOT NULL,
    version text NOT NULL,
    known_migrations text[] NOT NULL,
    heard_at timestamptz NOT NULL,
    CONSTRAINT server_process_pkey PRIMARY KEY (id)
);

CREATE TABLE key_quota (
    tenant_id uuid NOT NULL,
    key_id varchar(16) NOT NULL,
    events_left double precision NOT NULL,
    settled_at timestamptz NOT NULL,
    CONSTRAINT key_quota_pkey PRIMARY KEY (tenant_id, key_id),
    CONSTRAINT key_quota_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE
);
ALTER TABLE key_quota ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON key_quota
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON key_quota FROM tooltrail_app;
