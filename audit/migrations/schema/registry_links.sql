-- What compares stored calls with the registry: replays and drift of a tool. The worker runs
-- them. They hold counts, paths, codes and ids of calls; no payload is copied.

-- tool_replay: a tool's stored calls validated again, against a draft.
--
-- Retention: the newest 20 of each tool are kept, of drafts and of other definitions each.
-- Erasure: no effect; it holds no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_replay (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    tool_id uuid NOT NULL,
    tool_name text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's name
    draft_revision integer NOT NULL,     -- of the schemas below; 0: not of a draft
    base_number integer,                 -- the version it is compared with; NULL: there was none
    input_schema text NOT NULL,          -- the draft's, JSON as text
    output_schema text,                  -- NULL: outputs are not validated
    since timestamptz NOT NULL,          -- of the calls' start; until is not included
    until timestamptz NOT NULL,
    call_limit integer NOT NULL,         -- at most so many calls, the newest
    state text NOT NULL,
    call_count bigint,                   -- calls to read; NULL: not counted yet
    read_count bigint NOT NULL,
    cursor_at timestamptz,               -- start and id of the last call read; NULL: none yet
    cursor_id uuid,
    newly_violating_count bigint NOT NULL,  -- arguments and outputs that only the draft rejects
    findings text NOT NULL,              -- JSON (audit.work.replay.tally); '': nothing read yet
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

-- tool_drift: the shape of a tool's stored arguments and outputs compared with its schemas.
--
-- Retention: the newest 5 of each tool are kept.
-- Erasure: no effect; it holds names and types of members, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_drift (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    tool_id uuid NOT NULL,
    tool_name text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's name
    base_number integer,                 -- the version it is compared with; NULL: there was none
    since timestamptz NOT NULL,          -- of the calls' start; until is not included
    until timestamptz NOT NULL,
    query text DEFAULT '' NOT NULL,      -- which calls, without times; '': all of the tool
    call_limit integer NOT NULL,         -- at most so many calls, the newest
    state text NOT NULL,
    call_count bigint NOT NULL,          -- calls to read
    read_count bigint NOT NULL,
    cursor_at timestamptz,               -- start and id of the last call read; NULL: none yet
    cursor_id uuid,
    shape text NOT NULL,                 -- JSON (audit.work.drift.shape); '': nothing read yet
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
-- A tool's newest first.
CREATE INDEX tool_drift_tenant_tool_idx ON tool_drift (tenant_id, tool_id, id);
ALTER TABLE tool_drift ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_drift
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- polling_tool: a tool that is called with the same arguments on purpose: the page of repeats
-- leaves it out.
--
-- Retention: kept until an editor removes the mark.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE polling_tool (
    tenant_id uuid NOT NULL,
    tool_name text COLLATE "C" NOT NULL, -- registered or not
    created_at timestamptz NOT NULL,
    CONSTRAINT polling_tool_pkey PRIMARY KEY (tenant_id, tool_name),
    CONSTRAINT polling_tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE polling_tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON polling_tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
