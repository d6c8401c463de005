-- Reports: the figures of a range as they were when somebody asked for them, for ever.

CREATE TABLE report (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    created_at timestamptz NOT NULL,
    made_by text NOT NULL,               -- the user's name, the key's name, or '': the schedule
    made_as text NOT NULL,               -- person, key, schedule
    kind text NOT NULL,                  -- day, week, month, range
    start_at timestamptz NOT NULL,
    end_at timestamptz NOT NULL,
    time_zone text NOT NULL,
    period text,                         -- of a scheduled one its first day, as 2026-11-20
    ledger_size bigint NOT NULL,         -- events in the log when it was made
    query text NOT NULL,                 -- of its calls, see audit/queries/call_query.py
    again_of uuid,                       -- the report it was made again from, which may be gone
    figures jsonb NOT NULL,              -- audit/reports/figures.py
    CONSTRAINT report_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT report_tenant_kind_period_uniq UNIQUE (tenant_id, kind, period),
    CONSTRAINT report_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

-- What the worker makes by itself. No row: nothing, and reports are kept for the default time.
CREATE TABLE report_schedule (
    tenant_id uuid NOT NULL,
    kinds text[] NOT NULL,               -- of day, week, month
    time_zone text NOT NULL,             -- whose days, weeks and months they are
    keep_days integer NOT NULL,
    CONSTRAINT report_schedule_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT report_schedule_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE report ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE report_schedule ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON report
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON report_schedule
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- A report stays as it was made, or goes when its time is over.
REVOKE UPDATE ON report FROM tooltrail_app;
REVOKE DELETE ON report_schedule FROM tooltrail_app;
