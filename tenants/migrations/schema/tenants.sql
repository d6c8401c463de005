-- Tenants: the owners of all data, their admins' settings, and tombstones of deleted tenants.
--
-- How to read these files (tenants, tools_registry and audit have some each):
-- * The block above each table says what it is for and what happens to its rows. "Citus" is the
--   kind of table on a cluster. tests/schema/test_table_notes.py compares the block with the code.
-- * tooltrail_owner owns everything. tooltrail_app may SELECT, INSERT, UPDATE and DELETE on a new
--   table (config/postgresql/database.py), so each table takes away what the application must not do.
--   tooltrail_keeper, which erases and signs, may do only what is granted here.
-- * A table with a tenant_id shows the rows of one tenant: its policy compares the column with
--   the setting tooltrail.tenant_id, which the transaction sets (tenants/scope.py).
-- * Django's own names for constraints and indexes end in eight digits of a hash.

-- tenant: an organization. Every other row of ours belongs to exactly one.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: the row is deleted last.
-- Citus: reference table.
CREATE TABLE tenant (
    id uuid NOT NULL,                    -- a UUIDv7
    slug varchar(63) NOT NULL,           -- its name in addresses and commands; never changes
    name varchar(200) NOT NULL,
    created_at timestamptz NOT NULL,
    suspended_at timestamptz,            -- from then on nobody gets in and no event is accepted
    time_zone varchar(64) NOT NULL,      -- for viewers and browsers without one; '': UTC
    second_factor_roles varchar(8)[] DEFAULT '{}' NOT NULL,  -- members who need a second factor
    step_up boolean DEFAULT false NOT NULL,  -- reveal, erase, release: only with a fresh factor
    session_idle_minutes integer,        -- a session ends after this time without a page
    session_max_hours integer,           -- a session ends this long after the sign-in
    sso_only boolean DEFAULT false NOT NULL,  -- only sessions of its providers, and break glass
    anonymous_links boolean DEFAULT false NOT NULL,  -- share links may open without a sign-in
    CONSTRAINT tenant_pkey PRIMARY KEY (id),
    CONSTRAINT tenant_slug_key UNIQUE (slug),
    CONSTRAINT tenant_session_check CHECK (session_idle_minutes > 0 AND session_max_hours > 0)
);
CREATE INDEX tenant_slug_812ad82d_like ON tenant (slug varchar_pattern_ops);
-- A DELETE would take the tenant's actions along. What else is granted: shared_tables.sql.
REVOKE DELETE ON tenant FROM tooltrail_app;

-- tenant_setting: what a tenant's admin has set for its data. No row: the defaults.
--
-- Retention: kept; erased_to and index_from say how far retention has come.
-- Erasure: no effect. The row is also the lock between erasures, retention and legal holds.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tenant_setting (
    tenant_id uuid NOT NULL,
    payload_days integer,                -- days that payloads are kept; NULL: for ever
    index_days integer,                  -- days that the index is kept; NULL: for ever
    redact_names text[] NOT NULL,        -- members whose values are replaced before storing
    redact_patterns text[] NOT NULL,     -- regular expressions: what matches is replaced
    erased_to bigint NOT NULL,           -- payloads below this ledger index are erased
    index_from date,                     -- the index is emptied before this UTC day
    redact_otlp boolean DEFAULT true NOT NULL,  -- the SDK's default rules apply to OTLP, too
    clear_principals boolean DEFAULT false NOT NULL,  -- principals are stored in clear text
    witnesses jsonb DEFAULT '[]'::jsonb NOT NULL,  -- of the ledger: URL and public key of each
    witnesses_needed integer DEFAULT 0 NOT NULL,  -- how many of them must sign
    timestamp_url text DEFAULT ''::text NOT NULL,  -- of a time authority (RFC 3161); '': none
    floor_days integer,                  -- the retention floor; NULL: there is none
    CONSTRAINT tenant_setting_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT tenant_setting_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tenant_setting_days_check CHECK (payload_days > 0 AND index_days > 0),
    CONSTRAINT tenant_setting_floor_check
        CHECK (floor_days >= 183 AND payload_days >= floor_days AND index_days >= floor_days)
);
ALTER TABLE tenant_setting ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tenant_setting
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON tenant_setting FROM tooltrail_app;
GRANT SELECT, UPDATE (erased_to) ON tenant_setting TO tooltrail_keeper;

-- tombstone: proof that a tenant was deleted, and of what its ledger was. Holds no payload.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: a row is written first.
-- Citus: local to the coordinator.
CREATE TABLE tombstone (
    id uuid NOT NULL,                    -- the tenant's
    slug varchar(63) NOT NULL,
    name varchar(200) NOT NULL,
    begun_at timestamptz NOT NULL,
    ended_at timestamptz,                -- NULL: the deletion was interrupted and can continue
    operator varchar(150) NOT NULL,      -- the machine account that ran the command
    ledger_size bigint NOT NULL,         -- events in the log
    ledger_root bytea NOT NULL,          -- its RFC 6962 root, 32 bytes
    CONSTRAINT tombstone_pkey PRIMARY KEY (id)
);
REVOKE INSERT, UPDATE, DELETE ON tombstone FROM tooltrail_app;
