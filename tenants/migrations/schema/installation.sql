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
