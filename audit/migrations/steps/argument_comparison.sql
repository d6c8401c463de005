-- What arguments set calls apart, as a job of the worker.
CREATE TABLE argument_comparison (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,     -- also what `24h` in its query is relative to
    created_by text NOT NULL,            -- a user's or key's name
    query text NOT NULL,                 -- the selected calls
    tool_name text COLLATE "C" NOT NULL, -- the others are calls of this tool
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    state text NOT NULL,
    call_count bigint NOT NULL,          -- calls to read
    read_count bigint NOT NULL,
    erased_count bigint NOT NULL,        -- those without arguments
    tested_count bigint NOT NULL,        -- values and pairs of values that were tested
    observed text NOT NULL,              -- while it runs: audit.apart.arguments.Observed
    differences text NOT NULL,           -- audit.apart.arguments.FoundArgument
    problem text NOT NULL,               -- why it failed
    finished_at timestamptz,
    CONSTRAINT argument_comparison_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT argument_comparison_state_check
        CHECK (state IN ('waiting', 'running', 'done', 'cancelled', 'failed')),
    CONSTRAINT argument_comparison_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE argument_comparison ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON argument_comparison
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
