-- Regression sets: calls by which every change of a tool is judged. Their copies are payloads.

-- tool_regression: a version of a tool's set. The newest one holds, and has the cases.
--
-- Retention: kept.
-- Erasure: no effect; it holds no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_regression (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    tool_id uuid NOT NULL,
    number integer NOT NULL,             -- of this version of the set: 1, 2, …
    label text NOT NULL,                 -- of the calls that it was made of; '': the cases were removed
    judged_by integer NOT NULL,          -- the tool's version by which verdicts are expected
    case_count integer NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
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
-- A version of a set stays as it was made.
REVOKE UPDATE, DELETE ON tool_regression FROM tooltrail_app;

-- tool_regression_case: a call of the newest version of a set: a copy of its arguments and output, as
-- they were stored, and the violations that it is expected to have. It does not outlive the call in
-- the index, without which no erasure finds it.
--
-- Retention: rows are deleted index_days after the call's start.
-- Erasure: args and output are replaced, and is_erased is set.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE tool_regression_case (
    tenant_id uuid NOT NULL,
    set_id uuid NOT NULL,
    started_on date NOT NULL,            -- the call's UTC day and id
    invocation_id uuid NOT NULL,
    args text NOT NULL,                  -- members of the start event, JSON as text; '': there is none
    output text NOT NULL,                -- members of the end event
    expected text NOT NULL,              -- JSON: of each side path and code; null: it is not judged
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
