-- Searches of the log's payloads, which the worker runs, and the calls they found. No payload is
-- copied: what was erased from the log is in no result either.

CREATE TABLE payload_search (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id bigint NOT NULL,             -- whose it is
    created_at timestamptz NOT NULL,     -- also what `24h` in its query is relative to
    needle text NOT NULL,
    query text NOT NULL,                 -- the calls whose payloads are searched
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    state text NOT NULL,
    cursor_at timestamptz,               -- the last call that was searched; NULL: none yet
    cursor_id uuid,
    searched_count bigint NOT NULL,
    erased_count bigint NOT NULL,        -- events whose payloads are no longer there
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

CREATE TABLE payload_search_hit (
    tenant_id uuid NOT NULL,
    search_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    invocation_id uuid NOT NULL,
    kind text NOT NULL,                  -- start | end: the event that holds it
    CONSTRAINT payload_search_hit_pkey
        PRIMARY KEY (tenant_id, search_id, started_at, invocation_id, kind),
    CONSTRAINT payload_search_hit_search_fk FOREIGN KEY (tenant_id, search_id)
        REFERENCES payload_search (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE payload_search ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE payload_search_hit ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON payload_search
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON payload_search_hit
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
