-- Readings of a whole ledger, which the worker does when somebody asks: what they found.

CREATE TABLE ledger_check (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    asked_by text NOT NULL,
    created_at timestamptz NOT NULL,
    state text NOT NULL,
    size bigint NOT NULL,                -- entries to read
    next_index bigint NOT NULL,          -- and the first that was not read yet
    erased_count bigint NOT NULL,        -- entries whose payload is gone, as something on record says
    checkpoint_count bigint NOT NULL,    -- signed roots that were compared
    finding_count bigint NOT NULL,
    findings text[] NOT NULL,            -- the first of them
    finished_at timestamptz,
    CONSTRAINT ledger_check_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT ledger_check_state_check
        CHECK (state IN ('waiting', 'running', 'passed', 'failed', 'cancelled')),
    CONSTRAINT ledger_check_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE ledger_check ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_check
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- What was found stays.
REVOKE DELETE ON ledger_check FROM tooltrail_app;
