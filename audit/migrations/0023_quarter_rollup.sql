-- The counters of `rollup` by quarter of an hour, read in place of an hour's where a page cuts it:
-- at a range's ends, at midnight in India. Up to half an hour's calls were read singly at each cut,
-- most of a page of 24 hours (docs/adr/0010). Narrower: what those pages do not ask for is not here.
CREATE TABLE quarter_rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    quarter_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    started_count bigint NOT NULL,       -- every call; what follows is of the completed ones
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    violating_call_count bigint NOT NULL,
    violation_count bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit_count bigint NOT NULL,
    histogram numeric NOT NULL,          -- of durations: audit/index/histogram.py
    CONSTRAINT quarter_rollup_pkey
        PRIMARY KEY (tenant_id, started_on, quarter_at, tool_name, tool_version)
) PARTITION BY RANGE (started_on);

-- What is there already, day by day, so that no sum is of more than a day's calls. Days are made as
-- audit/index/partitions.py does. A bucket of a histogram is a place of its number.
ALTER TABLE invocation NO FORCE ROW LEVEL SECURITY;
DO $$
DECLARE
    partition record;
    name text;
BEGIN
    FOR partition IN
        SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day, right(c.relname, 8) AS digits,
               pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'rollup'::regclass
    LOOP
        name := 'quarter_rollup_' || partition.digits;
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF quarter_rollup %s WITH (fillfactor = %s)', name,
            partition.bounds, CASE WHEN partition.day < current_date THEN 100 ELSE 50 END
        );
        EXECUTE format('REVOKE ALL ON %I FROM tooltrail_app', name);
        EXECUTE format(
            'ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name
        );
        INSERT INTO quarter_rollup
        SELECT tenant_id, started_on, quarter_at, tool_name, tool_version, sum(started),
               coalesce(sum(started) FILTER (WHERE bucket IS NOT NULL), 0), sum(failed),
               sum(violating), sum(violations), least(sum(prompt), 9223372036854775807),
               least(sum(completion), 9223372036854775807), sum(hits),
               coalesce(sum(started * ('1' || repeat('0', 12 * bucket))::numeric), 0)
        FROM (
            SELECT tenant_id, started_on,
                   date_bin('15 minutes', started_at, '2000-01-01 00:00+00') AS quarter_at,
                   tool_name, tool_version,
                   CASE WHEN state = 'open' THEN NULL
                        WHEN coalesce(duration_us, 0) < 1000 THEN 0
                        ELSE least(
                            1 + floor(ln(duration_us / 1000::float8) / 0.10008345855698263::float8),
                            127
                        )
                   END::integer AS bucket,
                   count(*) AS started, count(*) FILTER (WHERE state = 'failed') AS failed,
                   count(*) FILTER (WHERE violation_count > 0 AND state <> 'open') AS violating,
                   sum(violation_count) AS violations, sum(prompt_tokens) AS prompt,
                   sum(completion_tokens) AS completion, count(*) FILTER (WHERE cache_hit) AS hits
            FROM invocation
            WHERE started_on = partition.day
            GROUP BY 1, 2, 3, 4, 5, 6
        ) AS counted
        GROUP BY tenant_id, started_on, quarter_at, tool_name, tool_version;
    END LOOP;
END
$$;
ALTER TABLE invocation FORCE ROW LEVEL SECURITY;

ALTER TABLE quarter_rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON quarter_rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON quarter_rollup FROM tooltrail_app;
