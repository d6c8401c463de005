CREATE TABLE archive (
    tenant_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    stopped_at timestamptz,
    stopped_by text,
    payload_days integer,
    next_index bigint NOT NULL,
    end_index bigint,
    at_once_to bigint,
    failure text NOT NULL,
    failing_since timestamptz,
    attempt_count integer NOT NULL,
    next_attempt_at timestamptz NOT NULL,
    claim uuid,
    claimed_until timestamptz,
    CONSTRAINT archive_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT archive_stopped_check CHECK (num_nulls(stopped_at, stopped_by) IN (0, 2)),
    CONSTRAINT archive_days_check CHECK (payload_days > 0),
    CONSTRAINT archive_failing_check CHECK ((failure = '') = (failing_since IS NULL)),
    CONSTRAINT archive_claim_check CHECK (num_nulls(claim, claimed_until) IN (0, 2)),
    CONSTRAINT archive_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE archive ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON archive
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON archive FROM tooltrail_app;
GRANT SELECT, UPDATE (claim, claimed_until, at_once_to) ON archive TO tooltrail_keeper;
CREATE TABLE archive_segment (
    tenant_id uuid NOT NULL,
    first_index bigint NOT NULL,
    end_index bigint NOT NULL,
    day date NOT NULL,
    last_received_at timestamptz NOT NULL,
    epoch integer NOT NULL,
    size bigint NOT NULL,
    packs bigint[] NOT NULL,
    payload_count integer NOT NULL,
    byte_count bigint NOT NULL,
    record_sha256 bytea NOT NULL,
    archived_at timestamptz NOT NULL,
    keys_gone_at timestamptz,
    CONSTRAINT archive_segment_pkey PRIMARY KEY (tenant_id, first_index),
    CONSTRAINT archive_segment_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE archive_segment ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON archive_segment
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON archive_segment FROM tooltrail_app;
GRANT UPDATE (keys_gone_at) ON archive_segment TO tooltrail_app;
GRANT SELECT ON archive_segment TO tooltrail_keeper;
