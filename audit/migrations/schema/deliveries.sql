-- Where alerts are sent, and what was sent (docs/alerts.md).

-- alert_channel: where a tenant's alerts are sent: an address, a webhook, a chat room.
--
-- Retention: kept until an admin deletes it.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE alert_channel (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    settings jsonb NOT NULL,             -- what may be shown, such as recipients or a host
    secret_box bytea,                    -- encrypted, with a key that is not in the database
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
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

-- alert_delivery: a message for one channel, and each attempt to deliver it.
--
-- Retention: rows are deleted 90 days after they were created.
-- Erasure: no effect; messages contain no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE alert_delivery (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    channel_id uuid NOT NULL,            -- the channel may have been deleted since
    channel_name text NOT NULL,
    message_id uuid NOT NULL,            -- the same in all attempts and channels: tells repeats
    message jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    state text NOT NULL,                 -- failed: given up after a day
    attempt_count integer NOT NULL,      -- begun ones: a killed worker leaves no answer
    attempts jsonb NOT NULL,             -- of each answered one: when, and the answer
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
-- What is due.
CREATE INDEX alert_delivery_due_idx ON alert_delivery (tenant_id, next_attempt_at)
    WHERE state = 'waiting';
-- A channel's deliveries, newest first.
CREATE INDEX alert_delivery_channel_idx ON alert_delivery (tenant_id, channel_id, id);
ALTER TABLE alert_delivery ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert_delivery
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
