-- Looks for drift: the shape of a tool's stored arguments and outputs, by the worker. They hold names
-- and types of members, counts, and ids of calls; no payload is copied.

CREATE TABLE tool_drift (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    tool_id uuid NOT NULL,
    tool_name text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's name, copied
    base_number integer,                 -- the version it is held against; NULL: there was none
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    call_limit integer NOT NULL,         -- the newest so many calls of the range
    state text NOT NULL,
    call_count bigint NOT NULL,          -- calls there are to read
    read_count bigint NOT NULL,
    cursor_at timestamptz,               -- the last call that was read; NULL: none yet
    cursor_id uuid,
    found text NOT NULL,                 -- audit.work.drift.shape, JSON; '' before the first chunk
    problem text NOT NULL,               -- why it failed
    finished_at timestamptz,
    CONSTRAINT tool_drift_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_drift_state_check
        CHECK (state IN ('waiting', 'running', 'done', 'cancelled', 'failed')),
    CONSTRAINT tool_drift_call_limit_check CHECK (call_limit BETWEEN 1 AND 100000),
    CONSTRAINT tool_drift_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_drift_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id)
        ON DELETE CASCADE
);
-- A tool's looks, newest first.
CREATE INDEX tool_drift_tenant_tool_idx ON tool_drift (tenant_id, tool_id, id);

ALTER TABLE tool_drift ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_drift
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
