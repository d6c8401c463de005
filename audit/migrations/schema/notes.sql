-- Notes that people write about what the record shows. The record itself does not change.

-- note: a text, a label, an assignee and a state, about a call, a trace, a kind of violation or a
-- version of a tool.
--
-- Retention: kept until an editor deletes the note.
-- Erasure: text and salt of notes about an erased call or its trace are replaced, and is_erased is set.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE note (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    about text NOT NULL,                 -- call | trace | violation | version
    started_on date,                     -- of a call: its UTC day and id
    invocation_id uuid,
    trace_id text COLLATE "C" NOT NULL,  -- of a trace; '': another subject, as below
    tool_name text COLLATE "C" NOT NULL, -- of a call, a kind of violation, or a version
    tool_versions text[] NOT NULL,       -- how calls name the version: its number, its digest
    code text NOT NULL,                  -- of a kind of violation: its code and path
    path text NOT NULL,
    text text NOT NULL,
    label text COLLATE "C" NOT NULL,     -- '': none
    assignee text NOT NULL,              -- a member's name; '': nobody
    state text NOT NULL,
    fixed_in text NOT NULL,              -- the version of the tool that fixes it
    is_erased boolean NOT NULL,          -- whether an erasure removed the text
    salt uuid NOT NULL,                  -- random, so that the row's digest does not tell an erased text
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
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
