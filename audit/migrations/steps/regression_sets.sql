CREATE TABLE tool_regression (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    number integer NOT NULL,
    label text NOT NULL,
    judged_by integer NOT NULL,
    case_count integer NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    reason text NOT NULL,
    CONSTRAINT tool_regression_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT tool_regression_number_uniq UNIQUE (tenant_id, tool_id, number),
    CONSTRAINT tool_regression_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_regression_tool_fk FOREIGN KEY (tenant_id, tool_id)
        REFERENCES tool (tenant_id, id) ON DELETE CASCADE
);
ALTER TABLE tool_regression ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_regression
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON tool_regression FROM tooltrail_app;
CREATE TABLE tool_regression_case (
    tenant_id uuid NOT NULL,
    set_id uuid NOT NULL,
    started_on date NOT NULL,
    invocation_id uuid NOT NULL,
    args text NOT NULL,
    output text NOT NULL,
    expected text NOT NULL,
    is_erased boolean NOT NULL,
    CONSTRAINT tool_regression_case_pkey PRIMARY KEY (tenant_id, set_id, invocation_id),
    CONSTRAINT tool_regression_case_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT tool_regression_case_set_fk FOREIGN KEY (tenant_id, set_id)
        REFERENCES tool_regression (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX tool_regression_case_call ON tool_regression_case (tenant_id, started_on, invocation_id);
ALTER TABLE tool_regression_case ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tool_regression_case
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
GRANT SELECT, UPDATE (args, output, is_erased) ON tool_regression_case TO tooltrail_keeper;
