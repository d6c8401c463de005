CREATE TABLE alert_channel (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    settings jsonb NOT NULL,
    secret_box bytea,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    CONSTRAINT alert_channel_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_channel_tenant_name_uniq UNIQUE (tenant_id, name),
    CONSTRAINT alert_channel_kind_check CHECK (kind IN ('email', 'webhook', 'slack', 'service')),
    CONSTRAINT alert_channel_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE alert_channel ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert_channel
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

CREATE TABLE alert_delivery (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    channel_id uuid NOT NULL,
    channel_name text NOT NULL,
    message_id uuid NOT NULL,
    message jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    state text NOT NULL,
    attempt_count integer NOT NULL,
    attempts jsonb NOT NULL,
    next_attempt_at timestamptz NOT NULL,
    finished_at timestamptz,
    CONSTRAINT alert_delivery_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_delivery_message_uniq UNIQUE (tenant_id, channel_id, message_id),
    CONSTRAINT alert_delivery_state_check
        CHECK (state IN ('waiting', 'delivered', 'failed', 'cancelled')),
    CONSTRAINT alert_delivery_finished_check
        CHECK ((finished_at IS NULL) = (state = 'waiting')),
    CONSTRAINT alert_delivery_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE INDEX alert_delivery_due_idx ON alert_delivery (tenant_id, next_attempt_at)
    WHERE state = 'waiting';
CREATE INDEX alert_delivery_channel_idx ON alert_delivery (tenant_id, channel_id, id);
ALTER TABLE alert_delivery ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert_delivery
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
