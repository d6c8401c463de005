CREATE TABLE incident (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    title text NOT NULL,
    reason text NOT NULL,
    query text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    state text NOT NULL,
    problem text NOT NULL,
    cursor_at timestamptz,
    cursor_id uuid,
    trace_ids text[] COLLATE "C" NOT NULL,
    hold_ids uuid[] NOT NULL,
    read_count integer NOT NULL,
    call_count bigint NOT NULL,
    since timestamptz,
    until timestamptz,
    timeline text NOT NULL,
    page text NOT NULL,
    sha256 text NOT NULL,
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
