-- The index over the log: one row per call, per violation, and the counts derived from them.
-- All are partitioned by UTC day (`manage.py partitions`), and none is the truth.

CREATE TABLE invocation (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    invocation_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    duration_us bigint,
    state text NOT NULL,                 -- open | ok | failed
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,  -- '' when the producer did not say
    trace_id text COLLATE "C" NOT NULL,
    parent_invocation_id uuid,
    call_id text COLLATE "C" NOT NULL,
    tool_call_id text,
    error_type text COLLATE "C" NOT NULL,    -- '' unless failed
    error_code text,
    error_message text,                  -- the beginning, for lists; the whole is in the log
    upstream_status integer,
    retry_after_ms bigint,
    attempt integer,
    guard_strategy text,
    guard_outcome text,
    violation_count integer NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit boolean,
    turn_id text,
    run_id text COLLATE "C",
    ingestion_run_id text,
    workflow_id text,
    collection_id text,
    document_id text,
    document_version_id text,
    case_id text,
    idempotency_key text,
    timeouts_ms bigint,
    budget_tokens bigint,
    locale text,
    safety_mode text,
    producer_id text,
    start_batch_id uuid,                 -- where its two events lie in the log
    start_pos integer,
    end_batch_id uuid,
    end_pos integer,
    pair_conflict boolean NOT NULL,      -- its two events disagree about what they share
    CONSTRAINT invocation_pkey PRIMARY KEY (tenant_id, started_on, invocation_id),
    CONSTRAINT invocation_day_check
        CHECK (started_on = (started_at AT TIME ZONE 'UTC')::date),
    CONSTRAINT invocation_state_check
        CHECK (state IN ('open', 'ok', 'failed') AND (state = 'open') = (end_batch_id IS NULL))
) PARTITION BY RANGE (started_on);
-- Newest calls, and the two edges of a range that are not whole hours.
CREATE INDEX invocation_started_idx ON invocation (tenant_id, started_at, invocation_id);
-- Newest calls of one tool.
CREATE INDEX invocation_tool_idx ON invocation (tenant_id, tool_name, started_at);
-- The timeline.
CREATE INDEX invocation_trace_idx ON invocation (tenant_id, trace_id, started_at);
-- All of a run's calls.
CREATE INDEX invocation_run_idx ON invocation (tenant_id, run_id, started_at)
    WHERE run_id IS NOT NULL;
-- Identical calls.
CREATE INDEX invocation_call_idx ON invocation (tenant_id, call_id, started_at);
-- Open calls are few and asked for often.
CREATE INDEX invocation_open_idx ON invocation (tenant_id, started_at) WHERE end_batch_id IS NULL;

CREATE TABLE violation (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    invocation_id uuid NOT NULL,
    ordinal integer NOT NULL,
    started_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    path text NOT NULL,
    path_pattern text COLLATE "C" NOT NULL,  -- path with [*] for every index
    code text COLLATE "C" NOT NULL,
    severity text NOT NULL,
    expected text NOT NULL,
    received text NOT NULL,
    strategy text NOT NULL,
    outcome text NOT NULL,
    found_by text NOT NULL,              -- executor | server
    CONSTRAINT violation_pkey PRIMARY KEY (tenant_id, started_on, invocation_id, ordinal)
) PARTITION BY RANGE (started_on);
-- The breakdown by tool and code.
CREATE INDEX violation_started_idx ON violation (tenant_id, started_at);

CREATE TABLE trace (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,            -- one row per trace and UTC day, merged on reading
    trace_id text COLLATE "C" NOT NULL,
    first_started_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,        -- latest start or end known
    first_tool_name text NOT NULL,       -- of the call at first_started_at
    run_id text,
    started_count bigint NOT NULL,
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    violation_count bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    CONSTRAINT trace_pkey PRIMARY KEY (tenant_id, started_on, trace_id)
) PARTITION BY RANGE (started_on);
-- The list of traces, newest first.
CREATE INDEX trace_started_idx ON trace (tenant_id, first_started_at, trace_id);

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
    buckets bigint[] NOT NULL,           -- 128 log-scaled counts, see audit/index/histogram.py
    CONSTRAINT latency_pkey PRIMARY KEY
        (tenant_id, started_on, hour_at, tool_name, tool_version)
) PARTITION BY RANGE (started_on);

-- Adds two histograms, bucket by bucket. Immutable, as ON CONFLICT needs it when distributed.
CREATE FUNCTION add_buckets(bigint[], bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT array_agg(a + b ORDER BY n)
            FROM unnest($1, $2) WITH ORDINALITY AS both_of(a, b, n));

-- Adds two sums of whatever producers report and stops at the largest bigint.
CREATE FUNCTION add_capped(bigint, bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN least($1::numeric + $2, 9223372036854775807)::bigint;

ALTER TABLE invocation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE violation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE trace ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rollup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE latency ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON invocation
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON violation
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON trace
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON rollup
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON latency
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- The index changes only by what arrives; dropping its days is the owner's.
REVOKE DELETE ON invocation, violation, trace, rollup, latency FROM tooltrail_app;
REVOKE UPDATE ON violation FROM tooltrail_app;
