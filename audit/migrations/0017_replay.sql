-- Replays: stored calls of a tool judged again by a draft, by the worker. They hold counts, paths
-- and codes, and ids of calls; no payload is copied.

CREATE TABLE tool_replay (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    tool_name text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's name, copied
    draft_revision integer NOT NULL,     -- which the schemas below are of
    base_number integer,                 -- the version it is held against; NULL: there was none
    input_schema text NOT NULL,          -- JSON as text, as the registry keeps it
    output_schema text,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    call_limit integer NOT NULL,         -- the newest so many calls of the range
    state text NOT NULL,
    call_count bigint,                   -- calls there are to read; NULL: not counted yet
    read_count bigint NOT NULL,
    cursor_at timestamptz,               -- the last call that was read; NULL: none yet
    cursor_id uuid,
    newly_violating_count bigint NOT NULL,  -- verdicts on outputs and arguments, added up
    findings text NOT NULL,              -- audit.work.replay.tally, JSON; '' before the first chunk
    problem text NOT NULL,               -- why it failed
    finished_at timestamptz,
    CONSTRAINT tool_replay_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_replay_state_check
        CHECK (state IN ('waiting', 'running', 'done', 'cancelled', 'failed')),
    CONSTRAINT tool_replay_call_limit_check CHECK (call_limit BETWEEN 1 AND 100000),
    CONSTRAINT tool_replay_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_replay_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id)
        ON DELETE CASCADE
);
-- A tool's replays, newest first.
CREATE INDEX tool_replay_tenant_tool_idx ON tool_replay (tenant_id, tool_id, id);

ALTER TABLE tool_replay ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_replay
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
