-- The registry: tools and their immutable versions.
-- In SQL because Django cannot say (tenant_id, id) for a model its admin edits.

CREATE TABLE tool (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(256) COLLATE "C" NOT NULL,
    notes text NOT NULL,
    latest_number integer NOT NULL,      -- of the current version; its row lock numbers the next
    created_at timestamptz NOT NULL,
    CONSTRAINT tool_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_tenant_name_uniq UNIQUE (tenant_id, name),
    CONSTRAINT tool_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE tool_version (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    number integer NOT NULL,             -- 1, 2, 3 … within the tool
    digest varchar(71) COLLATE "C" NOT NULL,  -- sha256:… of the contract, see tooltrail.tools.digest
    description text NOT NULL,
    input_schema text NOT NULL,          -- JSON as text: jsonb would reorder its members
    output_schema text,
    trusted boolean NOT NULL,
    ephemeral boolean NOT NULL,
    on_collision varchar(16) NOT NULL,
    meta text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by varchar(150) NOT NULL,    -- a user's name, or
    created_by_key varchar(16) NOT NULL, -- a key's id; the other one is empty
    CONSTRAINT tool_version_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_version_tenant_tool_number_uniq UNIQUE (tenant_id, tool_id, number),
    -- The name is part of the digest, so one digest is one version of one tool.
    CONSTRAINT tool_version_tenant_digest_uniq UNIQUE (tenant_id, digest),
    CONSTRAINT tool_version_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_version_tool_fk FOREIGN KEY (tenant_id, tool_id) REFERENCES tool (tenant_id, id),
    CONSTRAINT tool_version_on_collision_check
        CHECK (on_collision IN ('throw', 'replace', 'keep')),
    CONSTRAINT tool_version_number_check CHECK (number > 0)
);

ALTER TABLE tool ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tool_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON tool_version
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- What was published stays as it was published.
REVOKE UPDATE, DELETE ON tool_version FROM tooltrail_app;
REVOKE DELETE ON tool FROM tooltrail_app;
