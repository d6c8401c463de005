-- Counts over the index, for pages of long ranges: per hour, per quarter of an hour, per day. Like the
-- rest of the index they are partitioned by UTC day, and made again by `manage.py reindex`.

-- Adds two sums of what producers report, and stops at the largest bigint. Not STRICT: PostgreSQL
-- inlines a strict function only if its expression is strict, which CASE is not, and a call took
-- 25 µs per row. Not in numeric, which took 3 µs. IMMUTABLE, as ON CONFLICT needs it on Citus.
CREATE FUNCTION add_capped(bigint, bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN $2 > 0 AND $1 > 9223372036854775807 - $2 THEN 9223372036854775807
                ELSE $1 + $2 END;

-- rollup: the figures of one hour, tool and version, for pages of long ranges (docs/adr/0010).
--
-- Retention: rows are deleted index_days after their day; then the day is dropped.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    hour_at timestamptz NOT NULL,        -- when the hour begins
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    started_count bigint NOT NULL,       -- all calls; the columns below are of completed ones
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    violating_call_count bigint NOT NULL,  -- calls with violations
    violation_count bigint NOT NULL,
    duration_us bigint NOT NULL,         -- sum
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit_count bigint NOT NULL,
    histogram numeric NOT NULL,          -- of durations, 12 digits a bucket (audit/index/histogram.py)
    CONSTRAINT rollup_pkey PRIMARY KEY (tenant_id, started_on, hour_at, tool_name, tool_version)
) PARTITION BY RANGE (started_on);
ALTER TABLE rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON rollup FROM tooltrail_app;

-- quarter_rollup: the same per quarter of an hour, read where a time range cuts an hour: at its
-- ends, and at midnight in zones such as India's. It has only the columns those pages need.
--
-- Retention: rows are deleted index_days after their day; then the day is dropped.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE quarter_rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    quarter_at timestamptz NOT NULL,     -- when the quarter begins
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    started_count bigint NOT NULL,       -- all calls; the columns below are of completed ones
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    violating_call_count bigint NOT NULL,
    violation_count bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit_count bigint NOT NULL,
    histogram numeric NOT NULL,
    CONSTRAINT quarter_rollup_pkey
        PRIMARY KEY (tenant_id, started_on, quarter_at, tool_name, tool_version)
) PARTITION BY RANGE (started_on);
ALTER TABLE quarter_rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON quarter_rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON quarter_rollup FROM tooltrail_app;

-- error_rollup: failed calls per hour, tool, version and error type, which few pages need.
--
-- Retention: rows are deleted index_days after their day; then the day is dropped.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE error_rollup (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    hour_at timestamptz NOT NULL,        -- when the hour begins
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    error_type text COLLATE "C" NOT NULL,  -- '': the error has none
    call_count bigint NOT NULL,
    CONSTRAINT error_rollup_pkey PRIMARY KEY
        (tenant_id, started_on, hour_at, tool_name, tool_version, error_type)
) PARTITION BY RANGE (started_on);
ALTER TABLE error_rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON error_rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON error_rollup FROM tooltrail_app;

-- violation_day: violations of one kind on one UTC day. A kind is a tool, its version, a path
-- pattern, a code, and the guard's strategy and outcome.
--
-- Retention: rows are deleted index_days after their day; then the day is dropped.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE violation_day (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    kind uuid NOT NULL,                  -- first half of SHA-256 of the six texts, which may be
                                         -- longer than an index takes
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    path_pattern text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    strategy text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    violation_count bigint NOT NULL,
    call_count bigint NOT NULL,          -- calls with such a violation
    first_at timestamptz NOT NULL,       -- start of the first of those calls
    last_at timestamptz NOT NULL,        -- start of the last
    CONSTRAINT violation_day_pkey PRIMARY KEY (tenant_id, started_on, kind)
) PARTITION BY RANGE (started_on);
ALTER TABLE violation_day ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON violation_day
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- The application may delete the row of a kind of which no violation is left on its day.
CREATE POLICY nothing_left ON violation_day AS RESTRICTIVE FOR DELETE USING (violation_count = 0);
