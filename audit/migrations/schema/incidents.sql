-- Incidents: calls that an auditor put under legal holds, and the timeline of their traces.

-- incident: one incident: of which calls, and its timeline as it was made. Its evidence bundle has both.
--
-- Retention: rows are deleted when the tenant's retention of payloads is over since they were created
-- and none of their holds is in force.
-- Erasure: timeline and page become empty, and is_erased is set, if a call of one of the traces is erased.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE incident (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    title text NOT NULL,
    reason text NOT NULL,
    query text NOT NULL,                 -- of the calls, times as instants
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
    state text NOT NULL,
    problem text NOT NULL,               -- why it failed
    cursor_at timestamptz,               -- how far the calls were listed; NULL: to their end
    cursor_id uuid,
    trace_ids text[] COLLATE "C" NOT NULL,  -- the traces of the calls
    hold_ids uuid[] NOT NULL,            -- a legal hold of each trace
    read_count integer NOT NULL,         -- traces in the timeline so far
    call_count bigint NOT NULL,          -- calls of these
    since timestamptz,                   -- what the timeline covers of the traces; until is exclusive
    until timestamptz,
    timeline text NOT NULL,              -- JSON; while it is made, its items, one a line
    page text NOT NULL,                  -- the same as HTML
    sha256 text NOT NULL,                -- of the timeline and the page, as it is on record
    page_sha256 text NOT NULL,
    is_erased boolean NOT NULL,
    finished_at timestamptz,
    CONSTRAINT incident_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT incident_state_check CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT incident_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE incident ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON incident
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
GRANT SELECT, UPDATE (timeline, page, is_erased) ON incident TO tooltrail_keeper;
