-- Erasures by filter: which calls, what a dry run counted, how far the worker is, what is gone.

CREATE TABLE erasure (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    query text NOT NULL,                 -- which calls, in the language of the list of calls
    created_at timestamptz NOT NULL,     -- also what `24h` in its query is relative to
    created_by text NOT NULL,
    state text NOT NULL,
    step text NOT NULL,                  -- what the worker is at: find | calls | log | inbox
    cursor_at timestamptz,               -- the last call or line it was at; NULL: none yet
    cursor_id uuid,
    next_index bigint NOT NULL,          -- of the log: the first event not read yet
    end_index bigint NOT NULL,           -- and behind the last that is looked at
    first_started_at timestamptz,        -- of the calls that were found
    call_count bigint NOT NULL,          -- counted by the dry run, without what is held
    held_count bigint NOT NULL,
    event_count bigint NOT NULL,
    byte_count bigint NOT NULL,
    line_count bigint NOT NULL,
    reason text,                         -- NULL: nobody has confirmed it
    confirmed_at timestamptz,
    confirmed_by text,
    erased_calls bigint NOT NULL,        -- gone by now
    erased_events bigint NOT NULL,
    erased_bytes bigint NOT NULL,
    erased_lines bigint NOT NULL,
    finished_at timestamptz,
    problem text NOT NULL,
    CONSTRAINT erasure_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT erasure_state_check CHECK (
        state IN ('waiting', 'counting', 'counted', 'confirmed', 'erasing', 'done', 'cancelled', 'failed')
    ),
    CONSTRAINT erasure_confirmed_check
        CHECK (num_nulls(reason, confirmed_at, confirmed_by) IN (0, 3)),
    CONSTRAINT erasure_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

-- The calls a dry run found: no others are erased.
CREATE TABLE erasure_call (
    tenant_id uuid NOT NULL,
    erasure_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    invocation_id uuid NOT NULL,
    CONSTRAINT erasure_call_pkey PRIMARY KEY (tenant_id, erasure_id, started_at, invocation_id),
    CONSTRAINT erasure_call_erasure_fk FOREIGN KEY (tenant_id, erasure_id)
        REFERENCES erasure (tenant_id, id)
);

ALTER TABLE erasure ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE erasure_call ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON erasure
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON erasure_call
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON erasure FROM tooltrail_app;
REVOKE UPDATE, DELETE ON erasure_call FROM tooltrail_app;
GRANT SELECT, UPDATE ON erasure TO tooltrail_keeper;
GRANT SELECT ON erasure_call, otlp_span TO tooltrail_keeper;
-- What the index quotes of payloads goes with them.
GRANT UPDATE (call_id, error_message, idempotency_key) ON invocation TO tooltrail_keeper;
GRANT SELECT, UPDATE (expected, received) ON violation TO tooltrail_keeper;
