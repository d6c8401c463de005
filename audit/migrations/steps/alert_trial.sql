-- Trials of alert rules whose calls are not read in seconds, as jobs of the worker.
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
