-- What nobody may erase for the time being, and where the ledger says that something is gone.

CREATE TABLE legal_hold (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    name text NOT NULL,
    reason text NOT NULL,
    trace_id text COLLATE "C",           -- which calls it covers: what is not NULL must hold
    case_id text,
    tool_name text COLLATE "C",
    since timestamptz,                   -- of their start
    until timestamptz,
    set_at timestamptz NOT NULL,
    set_by text NOT NULL,
    released_at timestamptz,             -- NULL: it is in force
    released_by text,
    release_reason text,
    CONSTRAINT legal_hold_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT legal_hold_covers_check
        CHECK (num_nonnulls(trace_id, case_id, tool_name, since, until) > 0),
    CONSTRAINT legal_hold_released_check
        CHECK (num_nulls(released_at, released_by, release_reason) IN (0, 3)),
    CONSTRAINT legal_hold_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

-- From the entries of kind erasure and retention, so that a page finds the one about an event. The
-- entry alone is believed.
CREATE TABLE ledger_erasure (
    tenant_id uuid NOT NULL,
    entry_index bigint NOT NULL,
    begin_index bigint NOT NULL,         -- of the first event it is about
    end_index bigint NOT NULL,           -- behind the last
    erasure_id uuid,                     -- NULL: by retention
    CONSTRAINT ledger_erasure_pkey PRIMARY KEY (tenant_id, entry_index),
    CONSTRAINT ledger_erasure_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE legal_hold ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger_erasure ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON legal_hold
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON ledger_erasure
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- A hold is released, once, and stays on record.
REVOKE UPDATE, DELETE ON legal_hold FROM tooltrail_app;
GRANT UPDATE (released_at, released_by, release_reason) ON legal_hold TO tooltrail_app;
REVOKE INSERT, UPDATE, DELETE ON ledger_erasure FROM tooltrail_app;

-- Who erases says so in the same transaction, in the ledger and among the actions, and looks up
-- first what is held.
GRANT SELECT ON legal_hold, invocation TO tooltrail_keeper;
GRANT SELECT, INSERT ON ledger_erasure TO tooltrail_keeper;
GRANT INSERT ON batch, action TO tooltrail_keeper;
GRANT INSERT, UPDATE ON ledger_head TO tooltrail_keeper;
GRANT SELECT, UPDATE (erased_to) ON tenant_setting TO tooltrail_keeper;

-- Entries without payload of which a reading has not yet come to the entry that says why: begin
-- and end of each run, one behind the other.
ALTER TABLE ledger_check ADD missing bigint[] NOT NULL DEFAULT '{}';

-- A refused line is a payload, too: it goes when its time is over.
GRANT SELECT, UPDATE (raw) ON rejected_event TO tooltrail_keeper;
