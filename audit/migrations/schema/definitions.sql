-- Definitions of tools as their servers serve them (docs/adr/0027). They are not derived from the
-- log: like the registry, they are kept beside it, and each change is an entry of the ledger.

-- definition: one text that a server served as the definition of a tool.
--
-- Retention: kept.
-- Erasure: no effect; it holds what a server publishes, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE definition (
    tenant_id uuid NOT NULL,
    digest text COLLATE "C" NOT NULL,    -- sha256:… of content
    content text NOT NULL,               -- canonical JSON
    CONSTRAINT definition_pkey PRIMARY KEY (tenant_id, digest),
    CONSTRAINT definition_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE definition ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON definition
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A definition does not change.
REVOKE UPDATE, DELETE ON definition FROM tooltrail_app;

-- definition_server: a server that was seen to serve tools, and how often its lists changed.
--
-- Retention: kept.
-- Erasure: no effect; it holds what a server publishes, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE definition_server (
    tenant_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,      -- as the server, or for spans the agent, names itself
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    list_count bigint NOT NULL,          -- lists that were reported
    hour_at timestamptz NOT NULL,        -- the hour in which these changes were entered:
    entry_count integer NOT NULL,
    unrecorded_count bigint NOT NULL,    -- changes that were only counted: too many in an hour
    CONSTRAINT definition_server_pkey PRIMARY KEY (tenant_id, name),
    CONSTRAINT definition_server_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE definition_server ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON definition_server
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON definition_server FROM tooltrail_app;

-- served_definition: a definition of a tool of one server, and whether a person approved it.
--
-- Retention: kept.
-- Erasure: no effect; it holds what a server publishes, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE served_definition (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    server text COLLATE "C" NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    sighting_count bigint NOT NULL,
    state text NOT NULL,                 -- first: in the first list of the server, so no change
    approved_at timestamptz,             -- calls before it were made under an unapproved one
    approved_by text,                    -- a user's or key's name
    approval_reason text,
    approved_during tstzmultirange DEFAULT '{}' NOT NULL,  -- by approvals that were withdrawn: calls
                                         -- of these times stay calls under an approved definition
    withdrawn_at timestamptz,            -- the last of them
    withdrawn_by text,                   -- a user's or key's name
    withdrawal_reason text,
    CONSTRAINT served_definition_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT served_definition_tenant_place_uniq
        UNIQUE (tenant_id, server, tool_name, digest),
    CONSTRAINT served_definition_state_check CHECK (state IN ('first', 'pending', 'approved')),
    CONSTRAINT served_definition_approval_check CHECK (
        num_nonnulls(approved_at, approved_by, approval_reason)
            = CASE WHEN state = 'approved' THEN 3 ELSE 0 END
    ),
    CONSTRAINT served_definition_definition_fk FOREIGN KEY (tenant_id, digest)
        REFERENCES definition (tenant_id, digest)
);
-- The definitions of a tool, by whichever server.
CREATE INDEX served_definition_tool_idx ON served_definition (tenant_id, tool_name);
ALTER TABLE served_definition ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON served_definition
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON served_definition FROM tooltrail_app;

-- definition_change: from when on a server served which definition of a tool. In force is the latest
-- one before a moment; a change may be reported late.
--
-- Retention: kept.
-- Erasure: no effect; it holds what a server publishes, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE definition_change (
    tenant_id uuid NOT NULL,
    server text COLLATE "C" NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    seen_at timestamptz NOT NULL,
    digest text COLLATE "C" NOT NULL,    -- '': it changed too often to record
    server_version text COLLATE "C",
    client text COLLATE "C",             -- to which the list was served
    client_version text COLLATE "C",
    ledger_index bigint,                 -- of the entry; NULL: there is none
    CONSTRAINT definition_change_pkey
        PRIMARY KEY (tenant_id, server, tool_name, seen_at, digest),
    CONSTRAINT definition_change_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- The definitions in force of the tool of a call.
CREATE INDEX definition_change_tool_idx ON definition_change (tenant_id, tool_name, seen_at);
ALTER TABLE definition_change ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON definition_change
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON definition_change FROM tooltrail_app;
GRANT UPDATE (ledger_index) ON definition_change TO tooltrail_app;
