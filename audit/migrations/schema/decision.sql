-- Decisions about calls, which need not have run (docs/adr/0026).

-- decision: one decision about a call: refused, awaiting, approved. A call may have several and
-- no start; what became of it is read from the latest one and from `invocation`.
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
ALTER TABLE decision ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON decision
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON decision FROM tooltrail_app;
GRANT SELECT, UPDATE (call_id, reason, expected) ON decision TO tooltrail_keeper;

-- The days that the index has, as audit/index/partitions.py makes them: intake accepts only days
-- that all tables have.
DO $$
DECLARE
    partition record;
    name text;
BEGIN
    FOR partition IN
        SELECT right(c.relname, 8) AS digits, pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'invocation'::regclass
    LOOP
        name := 'decision_' || partition.digits;
        EXECUTE format('CREATE TABLE %I PARTITION OF decision %s', name, partition.bounds);
        EXECUTE format('REVOKE ALL ON %I FROM tooltrail_app', name);
        EXECUTE format(
            'ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name
        );
    END LOOP;
END
$$;

-- A trace may consist of decisions alone. Its first and last times count both.
ALTER TABLE trace ADD COLUMN decision_count bigint DEFAULT 0 NOT NULL;
DROP POLICY nothing_left ON trace;
CREATE POLICY nothing_left ON trace AS RESTRICTIVE FOR DELETE
    USING (started_count = 0 AND decision_count = 0);
