-- The registry: tools, their versions, what people changed, and the drafts they work on.
-- (How to read these files: tenants/migrations/schema/tenants.sql.)

-- tool: a registered name. Which contracts it stands for is in its versions.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(256) COLLATE "C" NOT NULL,
    notes text NOT NULL,
    latest_number integer NOT NULL,      -- of the newest version; the row's lock numbers the next
    created_at timestamptz NOT NULL,
    current_number integer NOT NULL,     -- of the version outputs are validated against; 0: none
    change_count integer NOT NULL,       -- rows of it in tool_change
    owner varchar(200) NOT NULL,         -- the person or team to ask
    link varchar(2000) NOT NULL,
    tags text[] NOT NULL,
    meta text NOT NULL,                  -- JSON: labels by people; a version's come with it
    is_checked_on_arrival boolean NOT NULL,  -- the server validates outputs without a guard
    CONSTRAINT tool_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_tenant_name_uniq UNIQUE (tenant_id, name),
    CONSTRAINT tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON tool FROM tooltrail_app;

-- tool_version: one published contract of a tool. It never changes.
--
-- Retention: kept, also when it is retired.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_version (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    number integer NOT NULL,             -- 1, 2, 3 … within the tool
    digest varchar(71) COLLATE "C" NOT NULL,  -- sha256:… of the contract (tooltrail.tools.digest)
    description text NOT NULL,
    input_schema text NOT NULL,          -- JSON as text: jsonb would reorder its members
    output_schema text,                  -- NULL: outputs are not validated
    trusted boolean NOT NULL,            -- this and the next two are the ADK's flags
    ephemeral boolean NOT NULL,          -- retired after a day without a call
    on_collision varchar(16) NOT NULL,   -- when the name is registered again
    meta text NOT NULL,                  -- JSON
    created_at timestamptz NOT NULL,
    created_by varchar(150) NOT NULL,    -- the user's name; '': a key published it
    created_by_key varchar(16) NOT NULL, -- the key's id; '': a user published it
    CONSTRAINT tool_version_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_version_tenant_tool_number_uniq UNIQUE (tenant_id, tool_id, number),
    -- The digest includes the name, so one digest is one version of one tool.
    CONSTRAINT tool_version_tenant_digest_uniq UNIQUE (tenant_id, digest),
    CONSTRAINT tool_version_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_version_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id),
    CONSTRAINT tool_version_on_collision_check
        CHECK (on_collision IN ('throw', 'replace', 'keep')),
    CONSTRAINT tool_version_number_check CHECK (number > 0)
);
ALTER TABLE tool_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_version
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON tool_version FROM tooltrail_app;

-- tool_change: who changed what of a tool, when and why. A version's state (published,
-- deprecated, retired) is its last change.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_change (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    ordinal integer NOT NULL,            -- 1, 2, 3 … within the tool
    at timestamptz NOT NULL,
    kind varchar(20) COLLATE "C" NOT NULL,
    number integer,                      -- of the version it is about; NULL: of none
    digest varchar(71) COLLATE "C" NOT NULL,  -- of the contract it is about; '': of none
    user_name varchar(150) NOT NULL,     -- '': a key or the server
    key_id varchar(16) COLLATE "C" NOT NULL,  -- '': a user or the server
    reason text NOT NULL,
    details text NOT NULL,               -- JSON
    contract text,                       -- JSON: what an executor sent, if it became no version
    attempted_on date,                   -- the UTC day of that; recorded once a day
    CONSTRAINT tool_change_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_change_tenant_tool_ordinal_uniq UNIQUE (tenant_id, tool_id, ordinal),
    CONSTRAINT tool_change_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_change_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id),
    CONSTRAINT tool_change_kind_check CHECK (kind IN (
        'created', 'described', 'draft_made', 'draft_saved', 'draft_discarded',
        'published', 'made_current', 'deprecated', 'retired', 'restored',
        'checks_on', 'checks_off', 'kept', 'refused'))
);
-- A version's state.
CREATE INDEX tool_change_state_idx ON tool_change (tenant_id, tool_id, number, ordinal)
    -- In the words PostgreSQL keeps, so that a restored backup has the very same.
    WHERE kind::text = ANY (ARRAY['published'::text, 'deprecated'::text, 'retired'::text, 'restored'::text]);
-- What was attempted on a day: many executors start with the same tools.
CREATE INDEX tool_change_attempt_idx ON tool_change (tenant_id, tool_id, attempted_on)
    WHERE attempted_on IS NOT NULL;
ALTER TABLE tool_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_change
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON tool_change FROM tooltrail_app;

-- tool_draft: a tool's next version while people edit it; one per tool.
--
-- Retention: kept until it is published or discarded.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_draft (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    base_number integer NOT NULL,        -- of the version it was copied from; 0: none
    revision integer NOT NULL,           -- counts saves: a save names the one it is based on
    description text NOT NULL,           -- this and the next six: as in tool_version
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
ALTER TABLE tool_draft ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_draft
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- observed_tool: a name that calls were made under, registered or not. The worker derives it
-- from the index.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE observed_tool (
    tenant_id uuid NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    first_seen_at timestamptz NOT NULL,  -- to the hour
    last_seen_at timestamptz NOT NULL,   -- to the hour
    CONSTRAINT observed_tool_pkey PRIMARY KEY (tenant_id, tool_name),
    CONSTRAINT observed_tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE observed_tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON observed_tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON observed_tool FROM tooltrail_app;
