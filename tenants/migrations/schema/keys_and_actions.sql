-- What programs sign in with, and the audit log: what people and keys did in Tooltrail.

-- api_key: a program's key. Only the SHA-256 of its secret is stored.
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
    scopes varchar(16)[] NOT NULL,       -- ingest, read … (the model's Scope)
    created_at timestamptz NOT NULL,
    created_by_id bigint,
    expires_at timestamptz,              -- NULL: never
    revoked_at timestamptz,
    last_used_at timestamptz,
    replaced_by_id uuid,                 -- of a rotated key: the one that takes its place
    owner_id bigint,                     -- the member who answers for it
    purpose varchar(300) DEFAULT '' NOT NULL,
    allowed_addresses varchar(43)[] DEFAULT '{}' NOT NULL,  -- networks; none: everywhere
    CONSTRAINT api_key_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT api_key_tenant_key_id_uniq UNIQUE (tenant_id, key_id),
    CONSTRAINT api_key_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE,
    CONSTRAINT api_key_created_by_fk
        FOREIGN KEY (created_by_id) REFERENCES app_user (id) ON DELETE SET NULL,
    CONSTRAINT api_key_owner_fk
        FOREIGN KEY (owner_id) REFERENCES app_user (id) ON DELETE SET NULL,
    CONSTRAINT api_key_secret_check CHECK (octet_length(secret_sha256) = 32)
);
ALTER TABLE api_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON api_key
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- key_quota: how many events a key may still send, over all hosts (audit/intake/quota.py). Without
-- TOOLTRAIL_EVENTS_PER_SECOND nobody writes it.
--
-- Retention: kept, a row for each key.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE key_quota (
    tenant_id uuid NOT NULL,
    key_id varchar(16) NOT NULL,
    events_left double precision NOT NULL,  -- negative: overdrawn
    settled_at timestamptz NOT NULL,        -- when so many were left
    CONSTRAINT key_quota_pkey PRIMARY KEY (tenant_id, key_id),
    CONSTRAINT key_quota_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE
);
ALTER TABLE key_quota ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON key_quota
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON key_quota FROM tooltrail_app;

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
    rows jsonb DEFAULT '{}' NOT NULL,    -- what it changed, as the ledger proves it: SHA-256 by
                                         -- table/id; null: the row is gone
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
-- The keys that signed statements about entries: a few of all actions.
CREATE INDEX action_tenant_statement_key_idx ON action (tenant_id, at)
    WHERE verb = 'ledger.statement_key';
ALTER TABLE action ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON action
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A row stays as it was written.
REVOKE UPDATE, DELETE ON action FROM tooltrail_app;
GRANT UPDATE (ledger_index) ON action TO tooltrail_app;
GRANT INSERT ON action TO tooltrail_keeper;
