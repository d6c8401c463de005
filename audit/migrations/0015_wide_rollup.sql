-- One row an hour, tool and version, with the histogram beside its counters: five rows and one
-- of another table were read for each, and most of a page of figures was that (docs/adr/0010).
-- Error types, which few pages name, are counted in a table of their own.
ALTER TABLE rollup NO FORCE ROW LEVEL SECURITY;
ALTER TABLE latency NO FORCE ROW LEVEL SECURITY;
CREATE TEMP TABLE rollup_sums ON COMMIT DROP AS
SELECT *
FROM (
    SELECT tenant_id, started_on, hour_at, tool_name, tool_version,
           coalesce(sum(call_count) FILTER (WHERE state = 'started'), 0)::bigint AS started_count,
           coalesce(sum(call_count) FILTER (WHERE state <> 'started'), 0)::bigint
               AS completed_count,
           coalesce(sum(call_count) FILTER (WHERE state = 'failed'), 0)::bigint AS failed_count,
           sum(violating_call_count)::bigint AS violating_call_count,
           sum(violation_count)::bigint AS violation_count,
           least(sum(duration_us), 9223372036854775807)::bigint AS duration_us,
           least(sum(prompt_tokens), 9223372036854775807)::bigint AS prompt_tokens,
           least(sum(completion_tokens), 9223372036854775807)::bigint AS completion_tokens,
           sum(cache_hit_count)::bigint AS cache_hit_count
    FROM rollup
    GROUP BY tenant_id, started_on, hour_at, tool_name, tool_version
) AS counted
LEFT JOIN latency USING (tenant_id, started_on, hour_at, tool_name, tool_version);
CREATE TEMP TABLE error_sums ON COMMIT DROP AS
SELECT tenant_id, started_on, hour_at, tool_name, tool_version, error_type, call_count
FROM rollup
WHERE state = 'failed';
CREATE TEMP TABLE rollup_day ON COMMIT DROP AS
SELECT right(c.relname, 8) AS day, pg_get_expr(c.relpartbound, c.oid) AS bounds
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'rollup'::regclass;

DROP TABLE rollup, latency;

CREATE TABLE rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    hour_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    started_count bigint NOT NULL,       -- every call; what follows is of the completed ones
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    violating_call_count bigint NOT NULL,
    violation_count bigint NOT NULL,
    duration_us bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit_count bigint NOT NULL,
    histogram numeric NOT NULL,          -- of durations: audit/index/histogram.py
    CONSTRAINT rollup_pkey PRIMARY KEY (tenant_id, started_on, hour_at, tool_name, tool_version)
) PARTITION BY RANGE (started_on);

CREATE TABLE error_rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    hour_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    error_type text COLLATE "C" NOT NULL,  -- empty where the error has none
    call_count bigint NOT NULL,
    CONSTRAINT error_rollup_pkey PRIMARY KEY
        (tenant_id, started_on, hour_at, tool_name, tool_version, error_type)
) PARTITION BY RANGE (started_on);

-- The days that there were, made as audit/index/partitions.py does.
DO $$
DECLARE
    partition record;
    parent text;
BEGIN
    FOR partition IN SELECT * FROM rollup_day
    LOOP
        FOREACH parent IN ARRAY ARRAY['rollup', 'error_rollup']
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

INSERT INTO rollup
SELECT tenant_id, started_on, hour_at, tool_name, tool_version, started_count, completed_count,
       failed_count, violating_call_count, violation_count, duration_us, prompt_tokens,
       completion_tokens, cache_hit_count, coalesce(histogram, 0)
FROM rollup_sums;
INSERT INTO error_rollup SELECT * FROM error_sums;

ALTER TABLE rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE error_rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON error_rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON rollup, error_rollup FROM tooltrail_app;
