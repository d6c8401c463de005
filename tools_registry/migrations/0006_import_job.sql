-- Imports go on in the worker, tool by tool: each tool of a file is a row. What is looked at only now
-- can be sent again.
DELETE FROM tool_import;
ALTER TABLE tool_import
    DROP COLUMN document,
    ADD COLUMN forms text[] NOT NULL,         -- what its tools are written as, in words
    ADD COLUMN note text NOT NULL,            -- what of it is missing as a whole
    ADD COLUMN is_large boolean NOT NULL,     -- the worker's; otherwise done while somebody waits
    ADD COLUMN as_drafts boolean NOT NULL,
    ADD COLUMN state varchar(20) NOT NULL,
    ADD COLUMN tool_count integer NOT NULL,
    ADD COLUMN done_count integer NOT NULL,   -- in the order of ordinals, by what state says
    ADD COLUMN user_id bigint,                -- who carries it out; names are copied
    ADD COLUMN user_name varchar(150) NOT NULL,
    ADD COLUMN key_id varchar(16) NOT NULL,
    ADD COLUMN reason text NOT NULL,
    ADD COLUMN finished_at timestamptz,       -- when it was looked at, or done, or cancelled
    ADD CONSTRAINT tool_import_state_check
        CHECK (state IN ('looking', 'looked_at', 'importing', 'done', 'cancelled'));
GRANT UPDATE ON tool_import TO tooltrail_app;

CREATE TABLE tool_import_tool (
    tenant_id uuid NOT NULL,
    import_id uuid NOT NULL,
    ordinal integer NOT NULL,                 -- its turn: the order of names
    position integer NOT NULL,                -- in the file
    path text NOT NULL,
    twin text NOT NULL,                       -- the place of an earlier one of its name; '': none
    is_own boolean NOT NULL,                  -- of the registry's own document
    content text NOT NULL,                    -- JSON, as it was sent
    drafts text,                              -- what would be done, either way; JSON
    published text,
    outcome text,                             -- what was done; JSON
    CONSTRAINT tool_import_tool_pkey PRIMARY KEY (tenant_id, import_id, ordinal),
    CONSTRAINT tool_import_tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_import_tool_import_fk FOREIGN KEY (tenant_id, import_id)
        REFERENCES tool_import (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE tool_import_tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_import_tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
