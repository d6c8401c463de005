-- alert_rule: what the worker watches, and when it raises an alert (audit/alerts).
--
-- Retention: kept until an editor deletes the rule.
-- Erasure: no effect; it holds queries and thresholds, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE alert_rule (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,                  -- unique within the tenant
    condition jsonb NOT NULL,            -- audit.alerts.rules
    is_enabled boolean NOT NULL,
    channel_ids uuid[] NOT NULL,         -- where its alerts are sent
    repeat_minutes integer NOT NULL,     -- people are notified again while nobody acknowledges; 0: never
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    changed_at timestamptz NOT NULL,     -- instants before are not judged by this condition
    changed_by text NOT NULL,
    muted_until timestamptz,             -- alerts before are recorded, and nobody is notified
    muted_by text,
    mute_reason text,
    judged_to timestamptz NOT NULL,      -- the last instant that was judged
    problem text NOT NULL,               -- why it could not be judged the last time; '': it could
    CONSTRAINT alert_rule_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_rule_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT alert_rule_name_uniq UNIQUE (tenant_id, name)
);
ALTER TABLE alert_rule ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert_rule
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- alert: a time during which a rule fired, and what people did about it. It outlives its rule.
--
-- Retention: kept.
-- Erasure: no effect; it holds a query and figures, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE alert (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    rule_id uuid NOT NULL,
    rule_name text NOT NULL,             -- when it was opened
    occasion text COLLATE "C" NOT NULL,  -- names what it is about: one alert for each
    severity text NOT NULL,              -- warning | alert: the worst so far
    state text NOT NULL,                 -- open | acknowledged | resolved
    held_from timestamptz NOT NULL,      -- the instant at which the condition began to hold
    held_to timestamptz,                 -- and that at which it held no longer; NULL: it holds
    opened_at timestamptz NOT NULL,      -- when the worker found it
    is_late boolean NOT NULL,            -- long after it began to hold: events or the worker were late
    is_muted boolean NOT NULL,           -- nobody was notified
    notified_at timestamptz,             -- when people were last notified of it
    title text NOT NULL,
    query text NOT NULL,                 -- of its calls
    value double precision,              -- at held_from, or when it became worse
    compared_with double precision,      -- the value a day or a week before
    threshold double precision,
    acknowledged_at timestamptz,
    acknowledged_by text,
    acknowledge_note text,
    resolved_at timestamptz,
    resolved_by text,                    -- a person, or Tooltrail: the condition no longer holds
    resolve_note text,
    uncounted bigint NOT NULL,           -- how often it fired again in the hour, without an alert
    CONSTRAINT alert_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT alert_occasion_uniq UNIQUE (tenant_id, rule_id, occasion)
);
-- The list of alerts, newest first, and those that nobody has resolved.
CREATE INDEX alert_held_from_idx ON alert (tenant_id, held_from, id);
CREATE INDEX alert_unresolved_idx ON alert (tenant_id, severity) WHERE state <> 'resolved';
ALTER TABLE alert ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON alert FROM tooltrail_app;

-- maintenance_window: planned times in which nobody is notified of alerts (audit/alerts/quiet.py).
--
-- Retention: kept until an editor deletes the window.
-- Erasure: no effect; it holds no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE maintenance_window (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,                  -- unique within the tenant
    reason text NOT NULL,
    starts_at timestamptz NOT NULL,      -- for the first time
    minutes integer NOT NULL,            -- how long it takes
    repeats text NOT NULL,               -- once | daily | weekly
    time_zone text NOT NULL,             -- by whose clock it repeats
    rule_ids uuid[] NOT NULL,            -- whose alerts are muted; '{}': those of all rules
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

-- alert_trial: a rule that is tried on the past by the worker, and what it has read.
--
-- Retention: rows are deleted 1 day after they were created.
-- Erasure: no effect; it holds a query, thresholds and figures, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE alert_trial (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
    rule jsonb NOT NULL,                 -- audit.alerts.rules.Rule
    rule_id uuid,                        -- the rule that is changed; NULL: it is a new one
    until timestamptz NOT NULL,          -- the last instant that is judged
    read_from timestamptz NOT NULL,      -- all calls from here to `until` are in the sums
    sums text NOT NULL,                  -- by minute: audit.alerts.trying
    state text NOT NULL,
    problem text NOT NULL,               -- why it failed
    finished_at timestamptz,
    CONSTRAINT alert_trial_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT alert_trial_state_check
        CHECK (state IN ('waiting', 'running', 'done', 'cancelled', 'failed')),
    CONSTRAINT alert_trial_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE alert_trial ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON alert_trial
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
