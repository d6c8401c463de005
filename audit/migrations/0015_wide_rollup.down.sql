-- What the wide rows do not tell, by state and error type, is counted from the calls again.
CREATE TEMP TABLE rollup_day ON COMMIT DROP AS
SELECT right(c.relname, 8) AS day, pg_get_expr(c.relpartbound, c.oid) AS bounds
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'rollup'::regclass;
ALTER TABLE rollup NO FORCE ROW LEVEL SECURITY;
CREATE TEMP TABLE histograms ON COMMIT DROP AS
SELECT tenant_id, started_on, hour_at, tool_name, tool_version, histogram
FROM rollup
WHERE completed_count > 0;

DROP TABLE rollup, error_rollup;

CREATE TABLE rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    hour_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,     -- started: every call; ok | failed: completed ones
    error_type text COLLATE "C" NOT NULL,
    call_count bigint NOT NULL,
    violating_call_count bigint NOT NULL,
    violation_count bigint NOT NULL,
    duration_us bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit_count bigint NOT NULL,
    CONSTRAINT rollup_pkey PRIMARY KEY
        (tenant_id, started_on, hour_at, tool_name, tool_version, state, error_type),
    CONSTRAINT rollup_state_check CHECK (state IN ('started', 'ok', 'failed'))
) PARTITION BY RANGE (started_on);
CREATE TABLE latency (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    hour_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    histogram numeric NOT NULL,
    CONSTRAINT latency_pkey PRIMARY KEY (tenant_id, started_on, hour_at, tool_name, tool_version)
) PARTITION BY RANGE (started_on);

DO $$
DECLARE
    partition record;
    parent text;
BEGIN
    FOR partition IN SELECT * FROM rollup_day
    LOOP
        FOREACH parent IN ARRAY ARRAY['rollup', 'latency']
        LOOP
            EXECUTE format(
                'CREATE TABLE %1$I PARTITION OF %2$I %3$s', parent || '_' || partition.day, parent,
                partition.bounds
            );
            EXECUTE format('REVOKE ALL ON %I FROM tooltrail_app', parent || '_' || partition.day);
            EXECUTE format(
                'ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
                parent || '_' || partition.day
            );
        END LOOP;
    END LOOP;
END
$$;

ALTER TABLE invocation NO FORCE ROW LEVEL SECURITY;
INSERT INTO rollup
SELECT tenant_id, started_on, date_trunc('hour', started_at, 'UTC'), tool_name, tool_version,
       'started', '', count(*), 0, 0, 0, 0, 0, 0
FROM invocation
GROUP BY 1, 2, 3, 4, 5
UNION ALL
SELECT tenant_id, started_on, date_trunc('hour', started_at, 'UTC'), tool_name, tool_version,
       state, error_type, count(*), count(*) FILTER (WHERE violation_count > 0),
       sum(violation_count), least(sum(duration_us), 9223372036854775807),
       least(sum(prompt_tokens), 9223372036854775807),
       least(sum(completion_tokens), 9223372036854775807), count(*) FILTER (WHERE cache_hit)
FROM invocation
WHERE state <> 'open'
GROUP BY 1, 2, 3, 4, 5, 6, 7;
ALTER TABLE invocation FORCE ROW LEVEL SECURITY;
INSERT INTO latency SELECT * FROM histograms;

ALTER TABLE rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE latency ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON latency
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON rollup, latency FROM tooltrail_app;
