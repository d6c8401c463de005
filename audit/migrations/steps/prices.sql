CREATE TABLE price_list (
    tenant_id uuid NOT NULL,
    holds_from date NOT NULL,
    currency text NOT NULL,
    prices jsonb NOT NULL,
    in_use jsonb,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    CONSTRAINT price_list_pkey PRIMARY KEY (tenant_id, holds_from),
    CONSTRAINT price_list_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE price_list ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON price_list
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

CREATE TABLE unit_path (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    from_index bigint NOT NULL,
    next_index bigint NOT NULL,
    goal_index bigint NOT NULL,
    erased_count bigint NOT NULL,
    CONSTRAINT unit_path_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT unit_path_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE unit_path ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON unit_path
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

CREATE TABLE call_units (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    unit_path_id uuid NOT NULL,
    invocation_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    units numeric NOT NULL,
    CONSTRAINT call_units_pkey PRIMARY KEY (tenant_id, started_on, unit_path_id, invocation_id),
    CONSTRAINT call_units_units_check CHECK (units >= 0),
    CONSTRAINT call_units_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE call_units ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON call_units
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
