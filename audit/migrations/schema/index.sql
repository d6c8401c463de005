-- The index over the log: a row per call and per violation, and the counts derived from them.
-- `manage.py reindex` makes all of it again from the log. Each table is partitioned by the UTC
-- day of the call's start; the worker makes the partitions (audit/index/partitions.py), which only
-- the owner may name. Hence these tables have no foreign keys.

-- Adds two sums of what producers report, and stops at the largest bigint. Not STRICT: PostgreSQL
-- inlines a strict function only if its expression is strict, which CASE is not, and a call took
-- 25 µs per row. Not in numeric, which took 3 µs. IMMUTABLE, as ON CONFLICT needs it on Citus.
CREATE FUNCTION add_capped(bigint, bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN $2 > 0 AND $1 > 9223372036854775807 - $2 THEN 9223372036854775807
                ELSE $1 + $2 END;

-- invocation: one call, from its two events: toolExecutionStart and toolExecutionEnd.
--
-- Retention: rows are deleted index_days after the call's start; then the day is dropped.
-- Erasure: call_id, error_message, idempotency_key and end_user are blanked; the row is kept.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE invocation (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    invocation_id uuid NOT NULL,
    started_at timestamptz NOT NULL,     -- from the end event while the start is missing
    ended_at timestamptz,
    duration_us bigint,
    state text NOT NULL,                 -- open | ok | failed
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,  -- '': not reported
    trace_id text COLLATE "C" NOT NULL,
    parent_invocation_id uuid,           -- the call that made this one
    call_id text COLLATE "C" NOT NULL,   -- hash of tool and arguments: the same for identical calls
    tool_call_id text,                   -- the LLM provider's id
    error_type text COLLATE "C" NOT NULL,    -- '': it did not fail
    error_code text,
    error_message text,                  -- the beginning, for lists; the whole is in the log
    upstream_status integer,             -- HTTP status of what the tool called
    retry_after_ms bigint,
    attempt integer,                     -- 1 is the first try
    guard_strategy text,                 -- NULL: no guard checked the output
    guard_outcome text,
    violation_count integer NOT NULL,    -- rows in violation
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cache_hit boolean,
    turn_id text,                        -- this and the next eight: the caller's context
    run_id text COLLATE "C",
    ingestion_run_id text,
    workflow_id text,
    collection_id text,
    document_id text,
    document_version_id text,
    case_id text,
    idempotency_key text,
    timeouts_ms bigint,                  -- the call's own time limit
    budget_tokens bigint,
    locale text,
    safety_mode text,
    producer_id text,
    start_batch_id uuid,                 -- where the start event is in the log; NULL: missing
    start_pos integer,                   -- its position in the batch, from 0
    end_batch_id uuid,
    end_pos integer,
    pair_conflict boolean NOT NULL,      -- the two events contradict each other
    CONSTRAINT invocation_pkey PRIMARY KEY (tenant_id, started_on, invocation_id),
    CONSTRAINT invocation_day_check
        CHECK (started_on = (started_at AT TIME ZONE 'UTC')::date),
    CONSTRAINT invocation_state_check
        CHECK (state IN ('open', 'ok', 'failed') AND (state = 'open') = (end_batch_id IS NULL))
) PARTITION BY RANGE (started_on);
-- The newest calls, and the two ends of a time range that are not whole hours.
CREATE INDEX invocation_started_idx ON invocation (tenant_id, started_at, invocation_id);
-- The newest calls of one tool.
CREATE INDEX invocation_tool_idx ON invocation (tenant_id, tool_name, started_at);
-- The timeline of a trace.
CREATE INDEX invocation_trace_idx ON invocation (tenant_id, trace_id, started_at);
-- All calls of a run. Without times: equal keys are stored once, so the index takes a tenth of
-- the space. A run's calls are sorted when they are read.
CREATE INDEX invocation_run_idx ON invocation (tenant_id, run_id) WHERE run_id IS NOT NULL;
-- Identical calls.
CREATE INDEX invocation_call_idx ON invocation (tenant_id, call_id, started_at);
-- The rest are of few calls that are searched for often, so that no search for one of them reads
-- all the others: open calls;
CREATE INDEX invocation_open_idx ON invocation (tenant_id, started_at) WHERE end_batch_id IS NULL;
-- calls whose start event is missing;
CREATE INDEX invocation_orphan_idx ON invocation (tenant_id, started_at)
    WHERE start_batch_id IS NULL;
-- failed calls, of all tools and of one;
CREATE INDEX invocation_failed_idx ON invocation (tenant_id, started_at, invocation_id)
    WHERE state = 'failed';
CREATE INDEX invocation_tool_failed_idx
    ON invocation (tenant_id, tool_name, started_at, invocation_id) WHERE state = 'failed';
-- calls with violations, of all tools and of one;
CREATE INDEX invocation_violating_idx ON invocation (tenant_id, started_at, invocation_id)
    WHERE violation_count > 0;
CREATE INDEX invocation_tool_violating_idx
    ON invocation (tenant_id, tool_name, started_at, invocation_id) WHERE violation_count > 0;
-- calls of one error code.
CREATE INDEX invocation_error_code_idx ON invocation (tenant_id, error_code, started_at, invocation_id)
    WHERE error_code IS NOT NULL;
ALTER TABLE invocation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON invocation
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A second policy, merged_elsewhere, stands behind otlp_span, which it reads.
GRANT SELECT, UPDATE (call_id, error_message, idempotency_key) ON invocation TO tooltrail_keeper;

-- violation: one place where a call's output does not match its schema.
--
-- Retention: rows are deleted index_days after the call's start; then the day is dropped.
-- Erasure: expected and received become empty; the row is kept.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE violation (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,            -- this, started_at and the tool: the call's
    invocation_id uuid NOT NULL,
    ordinal integer NOT NULL,            -- within the call
    started_at timestamptz NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    path text NOT NULL,                  -- JSONPath in the output
    path_pattern text COLLATE "C" NOT NULL,  -- path with [*] for every array index
    code text COLLATE "C" NOT NULL,
    severity text NOT NULL,              -- error | warning
    expected text NOT NULL,
    received text NOT NULL,              -- may quote the output
    strategy text NOT NULL,              -- the guard's, and what came of it
    outcome text NOT NULL,
    found_by text NOT NULL,              -- executor | server
    CONSTRAINT violation_pkey PRIMARY KEY (tenant_id, started_on, invocation_id, ordinal)
) PARTITION BY RANGE (started_on);
-- The newest violations.
CREATE INDEX violation_started_idx ON violation (tenant_id, started_at);
ALTER TABLE violation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON violation
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON violation FROM tooltrail_app;
GRANT SELECT, UPDATE (expected, received) ON violation TO tooltrail_keeper;

-- trace: the sums of one trace on one UTC day. A trace over midnight has several rows, which are
-- merged on reading.
--
-- Retention: rows are deleted index_days after their day; then the day is dropped.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE trace (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    trace_id text COLLATE "C" NOT NULL,
    first_started_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,        -- the latest known start or end
    first_tool_name text NOT NULL,       -- of the call at first_started_at
    run_id text,
    started_count bigint NOT NULL,       -- calls
    completed_count bigint NOT NULL,     -- calls, and so is failed_count
    failed_count bigint NOT NULL,
    violation_count bigint NOT NULL,     -- violations
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    CONSTRAINT trace_pkey PRIMARY KEY (tenant_id, started_on, trace_id)
) PARTITION BY RANGE (started_on);
-- The list of traces, newest first.
CREATE INDEX trace_started_idx ON trace (tenant_id, first_started_at, trace_id);
ALTER TABLE trace ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON trace
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- The application may delete the row of a day on which no call is left.
CREATE POLICY nothing_left ON trace AS RESTRICTIVE FOR DELETE USING (started_count = 0);

-- otlp_span: which OTLP span became which call, and its parent. Spans of one call come in several
-- requests, and the parents of a call need not be calls.
--
-- Retention: rows are deleted index_days after their day; then the day is dropped.
-- Erasure: context is blanked, also of the spans above; the row is kept.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE otlp_span (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    span_uuid uuid NOT NULL,             -- UUIDv5 of trace id and span id
    parent_uuid uuid,                    -- of the span right above it; NULL: there is none
    invocation_id uuid,                  -- the call it belongs to; NULL: it is no tool call
    call_started_at timestamptz,         -- that call's start
    tool_name text,
    tool_call_id text,
    scope text NOT NULL,                 -- the instrumentation's name
    kind integer NOT NULL,               -- OTLP's number: client, server …
    CONSTRAINT otlp_span_pkey PRIMARY KEY (tenant_id, started_on, span_uuid),
    CONSTRAINT otlp_span_call_check
        CHECK (num_nulls(invocation_id, call_started_at, tool_name) IN (0, 3))
) PARTITION BY RANGE (started_on);
-- The calls right below a span that comes later: exporters send what ends first.
CREATE INDEX otlp_span_parent_idx ON otlp_span (tenant_id, started_on, parent_uuid)
    WHERE invocation_id IS NOT NULL;
ALTER TABLE otlp_span ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON otlp_span
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- Two stored calls may become one, when the span that joins them comes last.
REVOKE UPDATE, DELETE ON otlp_span FROM tooltrail_app;
GRANT UPDATE (invocation_id, call_started_at) ON otlp_span TO tooltrail_app;
GRANT SELECT ON otlp_span TO tooltrail_keeper;
-- Of the two, the application may delete the one that was merged, if it has no violations.
CREATE POLICY merged_elsewhere ON invocation AS RESTRICTIVE FOR DELETE USING (
    violation_count = 0
    AND EXISTS (
        SELECT FROM otlp_span s
        WHERE s.tenant_id = invocation.tenant_id
          AND s.started_on = invocation.started_on
          AND s.span_uuid = invocation.invocation_id
          AND s.invocation_id <> invocation.invocation_id
    )
);

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
REVOKE DELETE ON violation_day FROM tooltrail_app;
