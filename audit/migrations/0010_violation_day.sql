-- What breaks where, by UTC day: violations are read by kind, and there are few kinds. As texts
-- may be longer than an index takes, a kind is known by the hash of its texts.
CREATE TABLE violation_day (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    kind uuid NOT NULL,                  -- the first half of SHA-256 of the six texts
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    path_pattern text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    strategy text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    violation_count bigint NOT NULL,
    call_count bigint NOT NULL,          -- calls with such a violation
    first_at timestamptz NOT NULL,       -- when the first and the last of those calls started
    last_at timestamptz NOT NULL,
    CONSTRAINT violation_day_pkey PRIMARY KEY (tenant_id, started_on, kind)
) PARTITION BY RANGE (started_on);

ALTER TABLE violation_day ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON violation_day
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON violation_day FROM tooltrail_app;
