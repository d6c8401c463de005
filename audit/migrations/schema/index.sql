-- The index over the log: a row per call, violation, decision, trace and span. The counts derived
-- from them are in sums.sql. `manage.py reindex` makes all of both again from the log. Each table is
-- partitioned by the UTC day of the call's start; the worker makes the partitions
-- (audit/index/partitions.py), which only the owner may name. Hence these tables have no foreign keys.
-- Policies compare columns of their own row: Citus distributes no table whose policy has a subquery.

-- invocation: one call, from its two events: toolExecutionStart and toolExecutionEnd.
--
-- Retention: rows are deleted index_days after the call's start; then the day is dropped.
-- Erasure: call_id, error_message, idempotency_key and principal are blanked; the row is kept.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE invocation (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    invocation_id uuid NOT NULL,
    started_at timestamptz NOT NULL,     -- from the end event while the start is missing
    ended_at timestamptz,
    duration_us bigint,
    state text NOT NULL,                 -- see the constraint; docs/adr/0028
    interim_state text,                  -- waiting | working: by its latest interim end event
    interim_at timestamptz,              -- when that was
    interim_us bigint[],                 -- when the latest 200 were, in µs since 1970, sorted
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
    agent text COLLATE "C",              -- this and the next nine: as events and spans report them
    agent_version text COLLATE "C",      -- of an agent that names none, that of its service
    model text COLLATE "C",
    provider text COLLATE "C",
    principal text COLLATE "C",          -- on whose behalf the call was made
    environment text COLLATE "C",
    service text COLLATE "C",
    mcp_server text COLLATE "C",         -- name and version
    mcp_client text COLLATE "C",
    mcp_protocol text COLLATE "C",       -- the protocol's version
    producer_id text,
    start_batch_id uuid,                 -- where the start event is in the log; NULL: missing
    start_pos integer,                   -- its position in the batch, from 0
    interim_batch_id uuid,               -- the latest interim end event
    interim_pos integer,
    end_batch_id uuid,
    end_pos integer,
    pair_conflict boolean NOT NULL,      -- the two events contradict each other
    absorbed boolean,                    -- true: part of another call, and deleted next; else NULL
    CONSTRAINT invocation_pkey PRIMARY KEY (tenant_id, started_on, invocation_id),
    CONSTRAINT invocation_day_check
        CHECK (started_on = (started_at AT TIME ZONE 'UTC')::date),
    CONSTRAINT invocation_state_check CHECK (
        state IN ('open', 'waiting', 'working', 'ok', 'failed', 'cancelled')
        AND (state IN ('open', 'waiting', 'working')) = (end_batch_id IS NULL)
    )
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
-- cancelled calls, which neither succeeded nor failed;
CREATE INDEX invocation_cancelled_idx ON invocation (tenant_id, started_at)
    WHERE state = 'cancelled';
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
-- Two stored calls become one when the span that joins them comes last. The application marks one as
-- absorbed, and may then delete it.
CREATE POLICY absorbed ON invocation AS RESTRICTIVE FOR DELETE USING (absorbed);
GRANT SELECT, UPDATE (call_id, error_message, idempotency_key, principal)
    ON invocation TO tooltrail_keeper;

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
REVOKE UPDATE ON violation FROM tooltrail_app;
-- A fuller account of a call made of spans replaces what the server found in the earlier one, and a
-- merged call goes with its violations. What an executor reported stays.
CREATE POLICY found_by_server ON violation AS RESTRICTIVE FOR DELETE USING (found_by = 'server');
GRANT SELECT, UPDATE (expected, received) ON violation TO tooltrail_keeper;

-- decision: one decision about a call: refused, awaiting, approved. A call may have several and
-- no start; what became of it is read from the latest one and from invocation (docs/adr/0026).
--
-- Retention: rows are deleted index_days after the decision; then the day is dropped.
-- Erasure: call_id, reason, expected and requested_by are blanked; the row is kept.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE decision (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,            -- of decided_at
    decision_id uuid NOT NULL,           -- event_id, or derived from the event
    decided_at timestamptz NOT NULL,
    decision text NOT NULL,
    invocation_id uuid NOT NULL,         -- the call; derived if the event does not name it
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,  -- '': not reported
    trace_id text COLLATE "C" NOT NULL,
    parent_invocation_id uuid,           -- the call that would make this one
    call_id text COLLATE "C",            -- hash of tool and arguments
    tool_call_id text,                   -- the LLM provider's id
    by_kind text,                        -- person | policy | guardrail; NULL: not reported
    by_id text COLLATE "C",
    by_name text,
    requested_by text COLLATE "C",       -- the person for whom the call is made
    reason text,                         -- the beginning, for lists; may quote the arguments
    definition_digest text,              -- of the tool's definition that was shown
    violation_count integer NOT NULL,    -- of the input schema
    paths text[] NOT NULL,               -- of the first of them, with [*] for every array index
    codes text[] NOT NULL,
    expected text[] NOT NULL,
    turn_id text,                        -- this and the next seven: the caller's context
    run_id text COLLATE "C",
    ingestion_run_id text,
    workflow_id text,
    collection_id text,
    document_id text,
    document_version_id text,
    case_id text,
    agent text COLLATE "C",              -- this and the next five: as of a call
    agent_version text COLLATE "C",
    model text COLLATE "C",
    provider text COLLATE "C",
    environment text COLLATE "C",
    service text COLLATE "C",
    producer_id text,
    batch_id uuid NOT NULL,              -- where the event is in the log
    pos integer NOT NULL,                -- its position in the batch, from 0
    CONSTRAINT decision_pkey PRIMARY KEY (tenant_id, started_on, decision_id),
    CONSTRAINT decision_day_check CHECK (started_on = (decided_at AT TIME ZONE 'UTC')::date),
    CONSTRAINT decision_decision_check CHECK (decision IN (
        'rejectedArguments', 'denied', 'awaiting', 'approved', 'cancelled', 'overBudget', 'overRate'
    )),
    CONSTRAINT decision_by_check CHECK (by_kind IN ('person', 'policy', 'guardrail')
        OR num_nonnulls(by_kind, by_id, by_name) = 0)
) PARTITION BY RANGE (started_on);
-- The newest decisions.
CREATE INDEX decision_decided_idx ON decision (tenant_id, decided_at, decision_id);
-- The newest decisions about one tool.
CREATE INDEX decision_tool_idx ON decision (tenant_id, tool_name, decided_at);
-- The timeline of a trace.
CREATE INDEX decision_trace_idx ON decision (tenant_id, trace_id, decided_at);
-- The decisions about one call.
CREATE INDEX decision_call_idx ON decision (tenant_id, invocation_id, decided_at);
-- Two kinds are searched for over the whole index: requests for approvals, to find those without an
-- answer;
CREATE INDEX decision_awaiting_idx ON decision (tenant_id, decided_at, decision_id)
    WHERE decision = 'awaiting';
-- rejected arguments, to find when a kind of violation was first seen.
CREATE INDEX decision_rejected_idx ON decision (tenant_id, decided_at, decision_id)
    WHERE decision = 'rejectedArguments';
ALTER TABLE decision ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON decision
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON decision FROM tooltrail_app;
GRANT SELECT, UPDATE (call_id, reason, expected, requested_by) ON decision TO tooltrail_keeper;

-- trace: the sums of one trace on one UTC day. A trace over midnight has several rows, which are
-- merged on reading. It may consist of decisions alone; its first and last times count both.
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
    run_id text,                         -- of its first call that has one: inside, a sub-agent's
                                         -- calls may have other runs
    run_at timestamptz,                  -- when that call began; NULL: none has a run id, or an
                                         -- older version wrote the row
    started_count bigint NOT NULL,       -- calls, and so are the next three
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    cancelled_count bigint DEFAULT 0 NOT NULL,  -- the only sum with cancelled calls
    decision_count bigint DEFAULT 0 NOT NULL,
    violation_count bigint NOT NULL,
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
-- The application may delete the row of a day on which no call and no decision is left.
CREATE POLICY nothing_left ON trace AS RESTRICTIVE FOR DELETE
    USING (started_count = 0 AND decision_count = 0);

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
    context text,                        -- a JSON object: agent, conversation, model and user that it
                                         -- reports for the calls below it; NULL: it says nothing
    CONSTRAINT otlp_span_pkey PRIMARY KEY (tenant_id, started_on, span_uuid),
    CONSTRAINT otlp_span_call_check
        CHECK (num_nulls(invocation_id, call_started_at, tool_name) IN (0, 3))
) PARTITION BY RANGE (started_on);
-- The spans right below one that comes later: exporters send what ends first. With their call ids,
-- those beside a call of an executor.
CREATE INDEX otlp_span_parent_idx ON otlp_span (tenant_id, started_on, parent_uuid, tool_call_id);
ALTER TABLE otlp_span ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON otlp_span
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- Two stored calls may become one, when the span that joins them comes last.
REVOKE UPDATE, DELETE ON otlp_span FROM tooltrail_app;
GRANT UPDATE (invocation_id, call_started_at) ON otlp_span TO tooltrail_app;
GRANT SELECT, UPDATE (context) ON otlp_span TO tooltrail_keeper;
