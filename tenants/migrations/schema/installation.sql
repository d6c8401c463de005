-- Tables that belong to the installation, not to a tenant.

-- tolerated_migration: migrations that older processes may run beside without knowing them
-- (config/postgresql/schema.py). A migration adds its own row.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
CREATE TABLE tolerated_migration (
    app text NOT NULL,
    name text NOT NULL,
    CONSTRAINT tolerated_migration_pkey PRIMARY KEY (app, name)
);
REVOKE INSERT, UPDATE, DELETE ON tolerated_migration FROM tooltrail_app;

-- server_process: web, gRPC and worker processes, each heard every few seconds. A migration may
-- wait until no process runs that does not know it (config/postgresql/processes.py).
--
-- Retention: rows are deleted a day after a process was last heard.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
CREATE TABLE server_process (
    id uuid NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,                -- on that host, perhaps in a container
    kind text NOT NULL,                  -- web, gRPC or worker
    version text NOT NULL,
    known_migrations text[] NOT NULL,    -- each as app.name
    heard_at timestamptz NOT NULL,
    CONSTRAINT server_process_pkey PRIMARY KEY (id)
);

-- cache_entry: Django's cache, for counts of wrong codes and for codes that were used, so that all
-- processes of all hosts know them (CACHES).
--
-- Retention: rows are deleted after they expired, when there are many.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
CREATE TABLE cache_entry (
    cache_key varchar(255) NOT NULL,
    value text NOT NULL,                 -- a pickled object, in base64
    expires timestamptz NOT NULL,
    CONSTRAINT cache_entry_pkey PRIMARY KEY (cache_key)
);
CREATE INDEX cache_entry_expires ON cache_entry (expires);

-- installation_provider: a sign-in for all tenants, which the operator defines (manage.py apply), and
-- which role its groups give in which tenant. Who signed in with it is in
-- socialaccount_socialaccount.
--
-- Retention: kept. It is disabled, not deleted: memberships and entries of the ledger name it.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
CREATE TABLE installation_provider (
    id uuid NOT NULL,
    name varchar(40) NOT NULL,           -- on the button
    kind varchar(8) NOT NULL,            -- the protocol
    settings jsonb NOT NULL,             -- as of identity_provider
    secret_box bytea,                    -- the client's secret, encrypted; NULL: it has none
    roles jsonb NOT NULL,                -- group, tenant and role of each
    created_at timestamptz NOT NULL,
    disabled_at timestamptz,             -- from then on nobody signs in with it
    CONSTRAINT installation_provider_pkey PRIMARY KEY (id),
    CONSTRAINT installation_provider_name_uniq UNIQUE (name),
    CONSTRAINT installation_provider_kind_check CHECK (kind IN ('oidc', 'saml'))
);
REVOKE UPDATE, DELETE ON installation_provider FROM tooltrail_app;
GRANT UPDATE (name, settings, secret_box, roles, disabled_at)
    ON installation_provider TO tooltrail_app;
