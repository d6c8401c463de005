CREATE TABLE floor_request (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    from_days integer NOT NULL,
    to_days integer,
    reason text NOT NULL,
    requested_at timestamptz NOT NULL,
    requested_by text NOT NULL,
    requested_person bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    state text NOT NULL,
    decided_at timestamptz,
    decided_by text,
    decided_person bigint,
    decision_reason text,
    CONSTRAINT floor_request_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT floor_request_state_check
        CHECK (state IN ('waiting', 'approved', 'refused', 'expired')),
    CONSTRAINT floor_request_days_check CHECK (to_days >= 183 AND to_days < from_days),
    CONSTRAINT floor_request_decided_check CHECK (
        num_nulls(decided_at, decided_by, decision_reason)
            = CASE WHEN state = 'waiting' THEN 3 ELSE 0 END
    ),
    CONSTRAINT floor_request_people_check
        CHECK (state <> 'approved' OR coalesce(decided_person <> requested_person, false)),
    CONSTRAINT floor_request_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE UNIQUE INDEX floor_request_waiting ON floor_request (tenant_id) WHERE state = 'waiting';
ALTER TABLE floor_request ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON floor_request
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON floor_request FROM tooltrail_app;
GRANT UPDATE (state, decided_at, decided_by, decided_person, decision_reason)
    ON floor_request TO tooltrail_app;
ALTER TABLE erasure ADD COLUMN created_person bigint;
