CREATE TABLE audit_sample (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    wanted_size integer,
    confidence integer,
    tolerable integer,
    expected integer,
    salt text NOT NULL,
    commitment text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    state text NOT NULL,
    problem text NOT NULL,
    cursor_at timestamptz,
    cursor_id uuid,
    found_count bigint NOT NULL,
    ledger_size bigint,
    call_count bigint,
    population text NOT NULL,
    size integer,
    fixed_at timestamptz,
    nonce text NOT NULL,
    checkpoint_size bigint,
    checkpoint_root text NOT NULL,
    seed text NOT NULL,
    drawn_at timestamptz,
    drawn_by text NOT NULL,
    prepared_at timestamptz,
    prepared_by text NOT NULL,
    prepared_person bigint,
    reviewed_at timestamptz,
    reviewed_by text NOT NULL,
    reviewed_person bigint,
    finished_at timestamptz,
    CONSTRAINT audit_sample_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT audit_sample_state_check CHECK (state IN ('waiting', 'running', 'fixed', 'drawn',
        'prepared', 'signed', 'cancelled', 'failed')),
    CONSTRAINT audit_sample_size_check
        CHECK (num_nulls(confidence, tolerable, expected) = 3 * num_nonnulls(wanted_size)),
    CONSTRAINT audit_sample_people_check CHECK (prepared_person <> reviewed_person),
    CONSTRAINT audit_sample_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE audit_sample ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_sample
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON audit_sample FROM tooltrail_app;
CREATE TABLE audit_sample_part (
    tenant_id uuid NOT NULL,
    sample_id uuid NOT NULL,
    number integer NOT NULL,
    records bytea NOT NULL,
    CONSTRAINT audit_sample_part_pkey PRIMARY KEY (tenant_id, sample_id, number),
    CONSTRAINT audit_sample_part_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT audit_sample_part_sample_fk FOREIGN KEY (tenant_id, sample_id)
        REFERENCES audit_sample (tenant_id, id) ON DELETE CASCADE
);
ALTER TABLE audit_sample_part ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_sample_part
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON audit_sample_part FROM tooltrail_app;
CREATE TABLE audit_sample_call (
    tenant_id uuid NOT NULL,
    sample_id uuid NOT NULL,
    position integer NOT NULL,
    ledger_index bigint NOT NULL,
    started_on date NOT NULL,
    invocation_id uuid NOT NULL,
    conclusion text NOT NULL,
    note text NOT NULL,
    exception text NOT NULL,
    salt text NOT NULL,
    texts text NOT NULL,
    concluded_at timestamptz,
    concluded_by text NOT NULL,
    is_erased boolean NOT NULL,
    CONSTRAINT audit_sample_call_pkey PRIMARY KEY (tenant_id, sample_id, position),
    CONSTRAINT audit_sample_call_conclusion_check
        CHECK (conclusion IN ('', 'pass', 'exception', 'unjudged')),
    CONSTRAINT audit_sample_call_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT audit_sample_call_sample_fk FOREIGN KEY (tenant_id, sample_id)
        REFERENCES audit_sample (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX audit_sample_call_call ON audit_sample_call (tenant_id, started_on, invocation_id);
ALTER TABLE audit_sample_call ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_sample_call
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON audit_sample_call FROM tooltrail_app;
GRANT UPDATE (conclusion, note, exception, salt, texts, concluded_at, concluded_by)
    ON audit_sample_call TO tooltrail_app;
GRANT SELECT, UPDATE (note, exception, salt, is_erased) ON audit_sample_call TO tooltrail_keeper;
