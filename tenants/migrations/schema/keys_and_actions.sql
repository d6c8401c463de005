-- What programs sign in with, and the audit log: what people and keys did in Tooltrail.

-- api_key: an executor's key. Only the SHA-256 of its secret is stored.
--
-- Retention: kept, also after it was revoked or expired.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE api_key (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    key_id varchar(16) NOT NULL,         -- the part of the key that is shown
    name varchar(100) NOT NULL,
    secret_sha256 bytea NOT NULL,
    scopes varchar(16)[] NOT NULL,       -- of ingest, read, payloads, registry
    created_at timestamptz NOT NULL,
    created_by_id bigint,
    expires_at timestamptz,              -- NULL: never
    revoked_at timestamptz,
    last_used_at timestamptz,
    replaced_by_id uuid,                 -- of a rotated key: the one that takes its place
    CONSTRAINT api_key_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT api_key_tenant_key_id_uniq UNIQUE (tenant_id, key_id),
    CONSTRAINT api_key_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE,
    CONSTRAINT api_key_created_by_fk
        FOREIGN KEY (created_by_id) REFERENCES app_user (id) ON DELETE SET NULL,
    CONSTRAINT api_key_secret_check CHECK (octet_length(secret_sha256) = 32)
);
ALTER TABLE api_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON api_key
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- action: the audit log, one row per action of a person, a key or the server. Names are copied,
-- so a row outlives its subjects. The worker enters each row in the tenant's ledger.
--
-- Retention: kept; what retention deletes is recorded here.
-- Erasure: kept; what an erasure removes is recorded here.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE action (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7
    at timestamptz NOT NULL,
    user_id bigint,                      -- NULL: a key or the server
    user_name varchar(150) NOT NULL,
    verb varchar(64) NOT NULL,           -- member.add, call.reveal …
    subject varchar(300) NOT NULL,       -- what it was done to
    details jsonb NOT NULL,
    ledger_index bigint,                 -- its entry in the ledger; NULL: not entered yet
    CONSTRAINT action_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT action_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE
);
-- The list of actions, newest first.
CREATE INDEX action_tenant_at_idx ON action (tenant_id, at);
CREATE UNIQUE INDEX action_tenant_ledger_index_uniq ON action (tenant_id, ledger_index);
-- Who has revealed a payload, read whenever an auditor opens it; few of all actions.
CREATE INDEX action_tenant_reveal_idx ON action (tenant_id, subject, at)
    WHERE verb = 'call.reveal' OR verb = 'inbox.reveal';  -- a restore would reword IN
ALTER TABLE action ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON action
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A row stays as it was written.
REVOKE UPDATE, DELETE ON action FROM tooltrail_app;
GRANT UPDATE (ledger_index) ON action TO tooltrail_app;
GRANT INSERT ON action TO tooltrail_keeper;
