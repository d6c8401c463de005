-- Who changed what, when and why; drafts; and what people know about a tool.

ALTER TABLE tool
    ADD COLUMN current_number integer NOT NULL DEFAULT 0,  -- of the current version; 0: none yet
    ADD COLUMN change_count integer NOT NULL DEFAULT 0,    -- of its rows in tool_change
    ADD COLUMN owner varchar(200) NOT NULL DEFAULT '',
    ADD COLUMN link varchar(2000) NOT NULL DEFAULT '',
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    ADD COLUMN meta text NOT NULL DEFAULT '{}';            -- JSON; a version's own is its producer's
UPDATE tool SET current_number = latest_number, change_count = latest_number;
ALTER TABLE tool
    ALTER COLUMN current_number DROP DEFAULT,
    ALTER COLUMN change_count DROP DEFAULT,
    ALTER COLUMN owner DROP DEFAULT,
    ALTER COLUMN link DROP DEFAULT,
    ALTER COLUMN tags DROP DEFAULT,
    ALTER COLUMN meta DROP DEFAULT;

CREATE TABLE tool_change (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    ordinal integer NOT NULL,            -- 1, 2, 3 … within the tool
    at timestamptz NOT NULL,
    kind varchar(20) COLLATE "C" NOT NULL,
    number integer,                      -- of the version it is about
    digest varchar(71) COLLATE "C" NOT NULL,  -- of the contract it is about; '' for none
    user_name varchar(150) NOT NULL,     -- who: a user, or
    key_id varchar(16) COLLATE "C" NOT NULL,  -- a key; both empty: the server by itself
    reason text NOT NULL,
    details text NOT NULL,               -- JSON
    contract text,                       -- JSON: what an executor brought, if it did not become one
    attempted_on date,                   -- of what an executor brought in vain: once a day
    CONSTRAINT tool_change_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_change_tenant_tool_ordinal_uniq UNIQUE (tenant_id, tool_id, ordinal),
    CONSTRAINT tool_change_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_change_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id),
    CONSTRAINT tool_change_kind_check CHECK (kind IN (
        'created', 'described', 'draft_made', 'draft_saved', 'draft_discarded',
        'published', 'made_current', 'deprecated', 'retired', 'restored', 'kept', 'refused'))
);
-- A version's state is the kind of the last of these.
CREATE INDEX tool_change_state_idx ON tool_change (tenant_id, tool_id, number, ordinal)
    -- In the words PostgreSQL keeps, so that a restored backup has the very same.
    WHERE kind::text = ANY (ARRAY['published'::text, 'deprecated'::text, 'retired'::text, 'restored'::text]);
-- What was attempted on a day: many executors start with the same tools.
CREATE INDEX tool_change_attempt_idx ON tool_change (tenant_id, tool_id, attempted_on)
    WHERE attempted_on IS NOT NULL;

INSERT INTO tool_change (tenant_id, id, tool_id, ordinal, at, kind, number, digest,
                         user_name, key_id, reason, details)
SELECT tenant_id, id, tool_id, number, created_at, 'published', number, digest,
       created_by, created_by_key, '', '{}'
FROM tool_version;

-- The one contract that can be edited: a tool's next version. It goes when it is published.
CREATE TABLE tool_draft (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    base_number integer NOT NULL,        -- of the version it began as; 0: of none
    revision integer NOT NULL,           -- 1, 2, 3 …: who saves says which one was read
    description text NOT NULL,
    input_schema text NOT NULL,
    output_schema text,
    trusted boolean NOT NULL,
    ephemeral boolean NOT NULL,
    on_collision varchar(16) NOT NULL,
    meta text NOT NULL,
    created_at timestamptz NOT NULL,
    saved_at timestamptz NOT NULL,
    saved_by varchar(150) NOT NULL,
    CONSTRAINT tool_draft_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_draft_tenant_tool_uniq UNIQUE (tenant_id, tool_id),
    CONSTRAINT tool_draft_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_draft_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id),
    CONSTRAINT tool_draft_on_collision_check CHECK (on_collision IN ('throw', 'replace', 'keep'))
);

ALTER TABLE tool_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tool_draft ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_change
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON tool_draft
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- What was done stays as it was done.
REVOKE UPDATE, DELETE ON tool_change FROM tooltrail_app;
