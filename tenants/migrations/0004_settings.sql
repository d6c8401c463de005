-- What a tenant's admin decides about its record, and what is left of a tenant that was deleted.

CREATE TABLE tenant_setting (
    tenant_id uuid NOT NULL,
    payload_days integer,                -- payloads are kept so long after they came; NULL: for ever
    index_days integer,                  -- calls can be looked up so long; NULL: for ever
    redact_names text[] NOT NULL,        -- members whose value never reaches the log
    redact_patterns text[] NOT NULL,     -- texts that never do
    erased_to bigint NOT NULL,           -- retention has erased the payloads below this ledger index
    index_from date,                     -- and the index before this UTC day
    CONSTRAINT tenant_setting_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT tenant_setting_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tenant_setting_days_check CHECK (payload_days > 0 AND index_days > 0)
);
ALTER TABLE tenant_setting ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tenant_setting
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON tenant_setting FROM tooltrail_app;

-- A rotated key names the one that takes its place.
ALTER TABLE api_key ADD replaced_by_id uuid;

-- The installation's, not a tenant's: nothing of what a tenant recorded is in it.
CREATE TABLE tombstone (
    id uuid NOT NULL,                    -- the tenant's
    slug varchar(63) NOT NULL,
    name varchar(200) NOT NULL,
    begun_at timestamptz NOT NULL,
    ended_at timestamptz,                -- NULL: deleting was interrupted, and can go on
    operator varchar(150) NOT NULL,
    ledger_size bigint NOT NULL,         -- events in its log, and the log's RFC 6962 root
    ledger_root bytea NOT NULL,
    CONSTRAINT tombstone_pkey PRIMARY KEY (id)
);
REVOKE INSERT, UPDATE, DELETE ON tombstone FROM tooltrail_app;
