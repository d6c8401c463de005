CREATE TABLE alert_rule (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    condition jsonb NOT NULL,
    is_enabled boolean NOT NULL,
    channel_ids uuid[] NOT NULL,
    repeat_minutes integer NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    muted_until timestamptz,
    muted_by text,
    mute_reason text,
    judged_to timestamptz NOT NULL,
    problem text NOT NULL,
    CONSTRAINT alert_rule_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_rule_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT alert_rule_name_uniq UNIQUE (tenant_id, name)
);
ALTER TABLE alert_rule ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert_rule
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

CREATE TABLE alert (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    rule_id uuid NOT NULL,
    rule_name text NOT NULL,
    occasion text COLLATE "C" NOT NULL,
    severity text NOT NULL,
    state text NOT NULL,
    held_from timestamptz NOT NULL,
    held_to timestamptz,
    opened_at timestamptz NOT NULL,
    is_late boolean NOT NULL,
    is_muted boolean NOT NULL,
    told_at timestamptz,
    title text NOT NULL,
    query text NOT NULL,
    value double precision,
    compared_with double precision,
    threshold double precision,
    acknowledged_at timestamptz,
    acknowledged_by text,
    acknowledge_note text,
    resolved_at timestamptz,
    resolved_by text,
    resolve_note text,
    uncounted bigint NOT NULL,
    CONSTRAINT alert_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT alert_occasion_uniq UNIQUE (tenant_id, rule_id, occasion)
);

CREATE INDEX alert_held_from_idx ON alert (tenant_id, held_from, id);
CREATE INDEX alert_unresolved_idx ON alert (tenant_id, severity) WHERE state <> 'resolved';
ALTER TABLE alert ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON alert FROM tooltrail_app;
