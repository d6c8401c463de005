CREATE TABLE note (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    about text NOT NULL,
    started_on date,
    invocation_id uuid,
    trace_id text COLLATE "C" NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_versions text[] NOT NULL,
    code text NOT NULL,
    path text NOT NULL,
    text text NOT NULL,
    label text COLLATE "C" NOT NULL,
    assignee text NOT NULL,
    state text NOT NULL,
    fixed_in text NOT NULL,
    is_erased boolean NOT NULL,
    salt uuid NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    CONSTRAINT note_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT note_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT note_about_check CHECK (about IN ('call', 'trace', 'violation', 'version')),
    CONSTRAINT note_state_check CHECK (state IN ('open', 'known', 'fixed'))
);
CREATE INDEX note_invocation ON note (tenant_id, invocation_id) WHERE invocation_id IS NOT NULL;
CREATE INDEX note_trace ON note (tenant_id, trace_id) WHERE trace_id <> '';
CREATE INDEX note_tool ON note (tenant_id, tool_name) WHERE tool_name <> '';
ALTER TABLE note ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON note
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
GRANT SELECT, UPDATE (text, is_erased, salt) ON note TO tooltrail_keeper;
