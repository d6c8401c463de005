-- What people do with stored calls: saved views, searches of payloads, reports, legal holds and
-- erasures.

-- saved_view: what a page lists, saved by a user under a name, in one tenant. Others are offered it if
-- it is shared.
--
-- Retention: kept until its user deletes it.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE saved_view (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id bigint NOT NULL,
    name text NOT NULL,
    query text NOT NULL,                 -- of calls: in the query language (docs/queries.md); of other
                                         -- pages: what follows the ? of the address
    created_at timestamptz NOT NULL,
    page text DEFAULT 'calls' NOT NULL,
    is_shared boolean DEFAULT FALSE NOT NULL,  -- whether all members of the tenant are offered it
    CONSTRAINT saved_view_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT saved_view_tenant_user_name_uniq UNIQUE (tenant_id, user_id, name),
    CONSTRAINT saved_view_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT saved_view_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
ALTER TABLE saved_view ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON saved_view
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- page_choice: what a user chose for a page, in one tenant: columns, and the view it opens with.
--
-- Retention: kept until the user is deleted.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE page_choice (
    tenant_id uuid NOT NULL,
    user_id bigint NOT NULL,
    page text NOT NULL,
    columns text[],                      -- NULL: those of the page
    default_view uuid,                   -- a saved_view, which may have been deleted since
    CONSTRAINT page_choice_pkey PRIMARY KEY (tenant_id, user_id, page),
    CONSTRAINT page_choice_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT page_choice_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
ALTER TABLE page_choice ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON page_choice
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- board: a page that people make of charts and lists of calls, for one member or for the tenant.
--
-- Retention: kept until its user, or for a shared one an editor, deletes it.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE board (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id bigint,                      -- only this user sees it; NULL: all members of the tenant
    name text NOT NULL,
    range text NOT NULL,                 -- its usual range: 24h
    panels jsonb NOT NULL,               -- in their order: audit/queries/boards.py
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,            -- a user's or key's name
    CONSTRAINT board_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT board_tenant_user_name_uniq UNIQUE NULLS NOT DISTINCT (tenant_id, user_id, name),
    CONSTRAINT board_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT board_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
ALTER TABLE board ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON board
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- payload_search: a search of the log's payloads by the worker: for what, and how far it is.
--
-- Retention: rows are deleted 1 day after they were created.
-- Erasure: no effect; what it found in the calls is in payload_search_hit.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE payload_search (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id bigint NOT NULL,             -- only this user sees it
    created_at timestamptz NOT NULL,     -- also what `24h` in its query is relative to
    needle text NOT NULL,                -- the text to find
    query text NOT NULL,                 -- the calls whose payloads are searched
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    state text NOT NULL,                 -- full: it found as many as it may
    cursor_at timestamptz,               -- start and id of the last call searched; NULL: none yet
    cursor_id uuid,
    searched_count bigint NOT NULL,
    erased_count bigint NOT NULL,        -- events without payload
    found_count bigint NOT NULL,
    finished_at timestamptz,
    CONSTRAINT payload_search_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT payload_search_state_check
        CHECK (state IN ('waiting', 'running', 'done', 'full', 'cancelled', 'failed')),
    CONSTRAINT payload_search_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT payload_search_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id)
        ON DELETE CASCADE
);
-- A user's searches, newest first.
CREATE INDEX payload_search_tenant_user_idx ON payload_search (tenant_id, user_id, id);
ALTER TABLE payload_search ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON payload_search
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- payload_search_hit: an event in which a search found its text. No payload is copied.
--
-- Retention: rows are deleted with their payload_search.
-- Erasure: rows of the calls are deleted.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE payload_search_hit (
    tenant_id uuid NOT NULL,
    search_id uuid NOT NULL,
    started_at timestamptz NOT NULL,     -- the call's start
    invocation_id uuid NOT NULL,
    kind text NOT NULL,                  -- start | end: the event
    CONSTRAINT payload_search_hit_pkey
        PRIMARY KEY (tenant_id, search_id, started_at, invocation_id, kind),
    CONSTRAINT payload_search_hit_search_fk FOREIGN KEY (tenant_id, search_id)
        REFERENCES payload_search (tenant_id, id) ON DELETE CASCADE
);
ALTER TABLE payload_search_hit ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON payload_search_hit
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
GRANT SELECT, DELETE ON payload_search_hit TO tooltrail_keeper;

-- argument_comparison: a comparison of arguments by the worker: of the calls of a query with those of
-- the tool's other calls. It holds names of arguments, types, digests of values and ids of calls.
--
-- Retention: rows are deleted 1 day after they were created.
-- Erasure: no effect; values are read from the calls' payloads when they are shown.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
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

-- report: the figures of a time range as they were when the report was made.
--
-- Retention: rows are deleted keep_days after they were made, 400 without a report_schedule.
-- Erasure: no effect; it holds figures, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE report (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    created_at timestamptz NOT NULL,
    made_by text NOT NULL,               -- a user's or key's name; '': the schedule
    made_as text NOT NULL,               -- person | key | schedule
    kind text NOT NULL,                  -- day | week | month | range
    start_at timestamptz NOT NULL,
    end_at timestamptz NOT NULL,
    time_zone text NOT NULL,
    period text,                         -- if scheduled: its first day, as 2026-11-20
    ledger_size bigint NOT NULL,         -- events in the log when it was made
    query text NOT NULL,                 -- the calls it is about (docs/queries.md)
    again_of uuid,                       -- the report it is a new version of, which may be gone
    figures jsonb NOT NULL,              -- audit/reports/figures.py
    CONSTRAINT report_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT report_tenant_kind_period_uniq UNIQUE (tenant_id, kind, period),
    CONSTRAINT report_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE report ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON report
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A report does not change.
REVOKE UPDATE ON report FROM tooltrail_app;

-- report_schedule: which reports the worker makes by itself, and how long all are kept.
-- No row: none, and the default time.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE report_schedule (
    tenant_id uuid NOT NULL,
    kinds text[] NOT NULL,               -- of day, week, month
    time_zone text NOT NULL,             -- whose days, weeks and months they are
    keep_days integer NOT NULL,
    CONSTRAINT report_schedule_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT report_schedule_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE report_schedule ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON report_schedule
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON report_schedule FROM tooltrail_app;

-- legal_hold: calls that neither retention nor an erasure may take while it is in force.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted. A hold does not stop it.
-- Citus: distributed by tenant_id.
CREATE TABLE legal_hold (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    name text NOT NULL,
    reason text NOT NULL,
    trace_id text COLLATE "C",           -- which calls: each of these five that is not NULL must
    case_id text,                        -- match
    tool_name text COLLATE "C",
    since timestamptz,                   -- of the call's start
    until timestamptz,                   -- of the call's start, not included
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
ALTER TABLE legal_hold ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON legal_hold
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A hold stays on record; only its release is written.
REVOKE UPDATE, DELETE ON legal_hold FROM tooltrail_app;
GRANT UPDATE (released_at, released_by, release_reason) ON legal_hold TO tooltrail_app;
GRANT SELECT ON legal_hold TO tooltrail_keeper;

-- floor_request: a request to lower the retention floor, or to remove it; another person approves it.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE floor_request (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    from_days integer NOT NULL,          -- the floor when it was requested
    to_days integer,                     -- the lower one; NULL: none
    reason text NOT NULL,
    requested_at timestamptz NOT NULL,
    requested_by text NOT NULL,          -- a user's or key's name
    requested_person bigint NOT NULL,    -- the account of whoever requested it
    expires_at timestamptz NOT NULL,     -- from then on nobody can approve it
    state text NOT NULL,
    decided_at timestamptz,              -- approved, refused, or expired
    decided_by text,
    decided_person bigint,               -- NULL: it expired
    decision_reason text,
    CONSTRAINT floor_request_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT floor_request_state_check
        CHECK (state IN ('waiting', 'approved', 'refused', 'expired')),
    CONSTRAINT floor_request_days_check CHECK (to_days >= 183 AND to_days < from_days),
    CONSTRAINT floor_request_decided_check CHECK (
        num_nulls(decided_at, decided_by, decision_reason)
            = CASE WHEN state = 'waiting' THEN 3 ELSE 0 END
    ),
    CONSTRAINT floor_request_people_check
        CHECK (state <> 'approved' OR coalesce(decided_person <> requested_person, false)),
    CONSTRAINT floor_request_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- One waits at a time.
CREATE UNIQUE INDEX floor_request_waiting ON floor_request (tenant_id) WHERE state = 'waiting';
ALTER TABLE floor_request ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON floor_request
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A request stays on record; only what became of it is written.
REVOKE UPDATE, DELETE ON floor_request FROM tooltrail_app;
GRANT UPDATE (state, decided_at, decided_by, decided_person, decision_reason)
    ON floor_request TO tooltrail_app;

-- erasure: an erasure by query: its dry run, its confirmation, how far it is, what is gone.
--
-- Retention: kept.
-- Erasure: kept; a row is added for each erasure and says what it removed.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE erasure (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    query text NOT NULL,                 -- which calls (docs/queries.md)
    created_at timestamptz NOT NULL,     -- also what `24h` in its query is relative to
    created_by text NOT NULL,
    state text NOT NULL,
    step text NOT NULL,                  -- what the worker does: find | calls | log | archive | inbox
    cursor_at timestamptz,               -- the last call or line of the step; NULL: none yet
    cursor_id uuid,
    next_index bigint NOT NULL,          -- of the log: the first event not read yet
    end_index bigint NOT NULL,           -- after the last event to read
    first_started_at timestamptz,        -- of the calls that match
    call_count bigint NOT NULL,          -- counted by the dry run, without what is held
    held_count bigint NOT NULL,          -- calls under a legal hold
    event_count bigint NOT NULL,
    byte_count bigint NOT NULL,
    line_count bigint NOT NULL,          -- rejected events
    reason text,                         -- NULL: nobody has confirmed it
    confirmed_at timestamptz,
    confirmed_by text,
    erased_calls bigint NOT NULL,        -- this and the next three: removed so far
    erased_events bigint NOT NULL,
    erased_bytes bigint NOT NULL,
    erased_lines bigint NOT NULL,
    finished_at timestamptz,             -- of the dry run, then of the erasure
    problem text NOT NULL,               -- why it failed
    created_person bigint,               -- the account of whoever previewed it; NULL: a program did
    CONSTRAINT erasure_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT erasure_state_check CHECK (
        state IN ('waiting', 'counting', 'counted', 'confirmed', 'erasing', 'done', 'cancelled', 'failed')
    ),
    CONSTRAINT erasure_confirmed_check
        CHECK (num_nulls(reason, confirmed_at, confirmed_by) IN (0, 3)),
    CONSTRAINT erasure_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE erasure ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON erasure
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON erasure FROM tooltrail_app;
GRANT SELECT, UPDATE ON erasure TO tooltrail_keeper;

-- erasure_call: a call that the dry run of an erasure matched. No other call is erased. The actions
-- erasure.preview and erasure.confirm state the number and the digest of all of them.
--
-- Retention: kept.
-- Erasure: kept; a row is added for each call.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE erasure_call (
    tenant_id uuid NOT NULL,
    erasure_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    invocation_id uuid NOT NULL,
    CONSTRAINT erasure_call_pkey PRIMARY KEY (tenant_id, erasure_id, started_at, invocation_id),
    CONSTRAINT erasure_call_erasure_fk FOREIGN KEY (tenant_id, erasure_id)
        REFERENCES erasure (tenant_id, id)
);
ALTER TABLE erasure_call ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON erasure_call
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON erasure_call FROM tooltrail_app;
GRANT SELECT ON erasure_call TO tooltrail_keeper;

-- mcp_use: how often a caller used a tool of /mcp in a minute, until the worker records it as an action.
--
-- Retention: rows are deleted when the worker has recorded them, a minute later.
-- Erasure: no effect; it holds a count and a digest, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE mcp_use (
    tenant_id uuid NOT NULL,
    key_id text NOT NULL,                -- of the key, or `user 17`: a person with an access token
    tool text NOT NULL,
    minute timestamptz NOT NULL,         -- its start
    use_count bigint NOT NULL,
    digest text NOT NULL,                -- of the arguments of all uses: audit.work.mcp_uses
    clients text[] NOT NULL,             -- names that the clients gave, the first five
    CONSTRAINT mcp_use_pkey PRIMARY KEY (tenant_id, key_id, tool, minute),
    CONSTRAINT mcp_use_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE mcp_use ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON mcp_use
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
