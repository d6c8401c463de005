-- Imports: files of tools that are previewed and then, confirmed, imported tool by tool.

-- tool_import: one file: how far the preview or the import is.
--
-- Retention: rows are deleted 1 day after they were created, or when they are discarded.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_import (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    created_by varchar(150) NOT NULL,    -- a user's name: only that user may continue it
    forms text[] NOT NULL,               -- the formats of its tools, in words
    note text NOT NULL,                  -- what is missing from the file as a whole
    is_large boolean NOT NULL,           -- done by the worker; false: within the request
    as_drafts boolean NOT NULL,          -- as drafts or published; until confirmed: the default
    state varchar(20) NOT NULL,
    tool_count integer NOT NULL,
    done_count integer NOT NULL,         -- of its tools, previewed or imported, by ordinal
    user_id bigint,                      -- who confirmed it: changes are made in this name
    user_name varchar(150) NOT NULL,
    key_id varchar(16) NOT NULL,
    reason text NOT NULL,
    finished_at timestamptz,             -- of the preview, the import or the cancellation
    CONSTRAINT tool_import_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_import_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_import_state_check
        CHECK (state IN ('previewing', 'previewed', 'importing', 'done', 'cancelled'))
);
ALTER TABLE tool_import ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_import
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- tool_import_tool: one tool of such a file, and what would become or became of it.
--
-- Retention: rows are deleted with their tool_import.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_import_tool (
    tenant_id uuid NOT NULL,
    import_id uuid NOT NULL,
    ordinal integer NOT NULL,            -- the order of work: by name
    position integer NOT NULL,           -- in the file
    path text NOT NULL,                  -- its place in the file, for messages
    twin text NOT NULL,                  -- path of an earlier tool of the same name; '': none
    is_own boolean NOT NULL,             -- from an export of the registry
    content text NOT NULL,               -- JSON, as it was sent
    drafts text,                         -- JSON: preview as drafts; NULL: not previewed yet
    published text,                      -- JSON: preview published
    outcome text,                        -- JSON: what was done; NULL: nothing yet
    CONSTRAINT tool_import_tool_pkey PRIMARY KEY (tenant_id, import_id, ordinal),
    CONSTRAINT tool_import_tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_import_tool_import_fk FOREIGN KEY (tenant_id, import_id)
        REFERENCES tool_import (tenant_id, id) ON DELETE CASCADE
);
ALTER TABLE tool_import_tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_import_tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
