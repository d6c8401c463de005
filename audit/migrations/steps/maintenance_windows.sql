CREATE TABLE maintenance_window (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    reason text NOT NULL,
    starts_at timestamptz NOT NULL,
    minutes integer NOT NULL,
    repeats text NOT NULL,
    time_zone text NOT NULL,
    rule_ids uuid[] NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    CONSTRAINT maintenance_window_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT maintenance_window_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT maintenance_window_name_uniq UNIQUE (tenant_id, name),
    CONSTRAINT maintenance_window_repeats_check CHECK (repeats IN ('once', 'daily', 'weekly'))
);
ALTER TABLE maintenance_window ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON maintenance_window
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
