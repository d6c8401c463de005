-- The archive in storage outside the database (`audit.archive`): which tenants have one, and what of
-- their ledgers is in it. What is archived can be read without these tables.

-- archive: that a tenant is archived, and how far.
--
-- Retention: kept.
-- Erasure: claim and claimed_until become NULL, so that a worker which archives begins again, and
--   at_once_to changes.
-- Tenant deletion: rows are deleted, after the keys of all archived payloads.
-- Citus: distributed by tenant_id.
CREATE TABLE archive (
    tenant_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- an operator
    stopped_at timestamptz,              -- nothing more is archived; erasures still reach it
    stopped_by text,
    payload_days integer,                -- for how long archived payloads can be read; NULL: for ever
    next_index bigint NOT NULL,          -- all entries before it are archived
    end_index bigint,                    -- of the segment that is archived now; NULL: none is
    at_once_to bigint,                   -- up to there, the end of a day is not waited for
    failure text NOT NULL,               -- why the last attempt failed; '' if it did not
    failing_since timestamptz,
    attempt_count integer NOT NULL,      -- failed ones in a row
    next_attempt_at timestamptz NOT NULL,
    claim uuid,                          -- of the worker that archives now
    claimed_until timestamptz,
    CONSTRAINT archive_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT archive_stopped_check CHECK (num_nulls(stopped_at, stopped_by) IN (0, 2)),
    CONSTRAINT archive_days_check CHECK (payload_days > 0),
    CONSTRAINT archive_failing_check CHECK ((failure = '') = (failing_since IS NULL)),
    CONSTRAINT archive_claim_check CHECK (num_nulls(claim, claimed_until) IN (0, 2)),
    CONSTRAINT archive_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE archive ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON archive
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- An erasure ends the claim of a worker that archives, as the keeper.
REVOKE DELETE ON archive FROM tooltrail_app;
GRANT SELECT, UPDATE (claim, claimed_until, at_once_to) ON archive TO tooltrail_keeper;

-- archive_segment: a range of the ledger that is archived: a UTC day, or a part of one.
--
-- Retention: kept.
-- Erasure: no effect: the keys of the calls are destroyed in the storage.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE archive_segment (
    tenant_id uuid NOT NULL,
    first_index bigint NOT NULL,
    end_index bigint NOT NULL,           -- after its last entry
    day date NOT NULL,                   -- on which its first entry was received
    last_received_at timestamptz NOT NULL,
    epoch integer NOT NULL,              -- of the checkpoint that covers it, as size
    size bigint NOT NULL,
    packs bigint[] NOT NULL,             -- ledger indexes at which its packs of payloads begin
    payload_count integer NOT NULL,      -- payloads that it has, or had
    byte_count bigint NOT NULL,          -- of its objects in the storage
    record_sha256 bytea NOT NULL,        -- of record.zip
    archived_at timestamptz NOT NULL,
    keys_gone_at timestamptz,            -- when the keys of all its payloads were destroyed
    CONSTRAINT archive_segment_pkey PRIMARY KEY (tenant_id, first_index),
    CONSTRAINT archive_segment_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE archive_segment ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON archive_segment
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- What is archived stays on record.
REVOKE UPDATE, DELETE ON archive_segment FROM tooltrail_app;
GRANT UPDATE (keys_gone_at) ON archive_segment TO tooltrail_app;
GRANT SELECT ON archive_segment TO tooltrail_keeper;
