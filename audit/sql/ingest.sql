-- stored_answer --
-- The answer to a batch that is already stored, its place in the ledger, and the hash of its body.
SELECT answer, first_index, event_count, body_sha256
FROM batch
WHERE tenant_id = %(tenant_id)s AND batch_on = %(batch_on)s AND batch_id = %(batch_id)s

-- calls_on_day --
-- The rows of these calls on one day. Queried as a range of one id, sorted by it, as only the
-- primary key can serve that. For a partition without statistics, the planner considered all
-- indexes equally good, kept that plan, and scanned all of the tenant's calls of the day for each
-- id (142 µs an event in requests of 20). One day per statement, so that other partitions are
-- pruned before it starts.
SELECT i.invocation_id, i.started_at
FROM unnest(%(invocation_ids)b::uuid[]) AS u (invocation_id)
CROSS JOIN LATERAL (
    SELECT c.invocation_id, c.started_at
    FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = date '1970-01-01' + %(day)b::integer
      AND c.invocation_id >= u.invocation_id
      AND c.invocation_id <= u.invocation_id
    ORDER BY c.invocation_id
    LIMIT 1
) AS i

-- {{insert_invocations}} --
-- One row per call, in order of key, so that writers cannot deadlock.
-- The arrays are unnested as columns. One unnest of many arrays would write each row to a
-- tuplestore and read it again: 6 % of PostgreSQL's work for an event.
INSERT INTO invocation AS i (
    tenant_id, started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
    tool_version, trace_id, parent_invocation_id, call_id, tool_call_id, error_type, error_code,
    error_message, upstream_status, retry_after_ms, attempt, guard_strategy, guard_outcome,
    violation_count, prompt_tokens, completion_tokens, cache_hit, turn_id, run_id,
    ingestion_run_id, workflow_id, collection_id, document_id, document_version_id, case_id,
    idempotency_key, timeouts_ms, budget_tokens, locale, safety_mode, producer_id,
    start_batch_id, start_pos, end_batch_id, end_pos, pair_conflict, mcp_server, mcp_client,
    mcp_protocol, agent, agent_version, model, provider, principal, environment, service
)
SELECT
    %(tenant_id)s, started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
    coalesce(tool_version, ''), trace_id, parent_invocation_id, call_id, tool_call_id, error_type,
    error_code, error_message, upstream_status, retry_after_ms, attempt, guard_strategy,
    guard_outcome, violation_count, prompt_tokens, completion_tokens, cache_hit, turn_id, run_id,
    ingestion_run_id, workflow_id, collection_id, document_id, document_version_id, case_id,
    idempotency_key, timeouts_ms, budget_tokens, locale, safety_mode, producer_id,
    start_batch_id, start_pos, end_batch_id, end_pos, pair_conflict, mcp_server, mcp_client,
    mcp_protocol, agent, agent_version, model, provider, principal, environment, service
FROM (SELECT
    unnest(%(started_on)b::date[]) AS started_on,
    unnest(%(invocation_id)b::uuid[]) AS invocation_id,
    unnest(%(started_at)b::timestamptz[]) AS started_at,
    unnest(%(ended_at)b::timestamptz[]) AS ended_at,
    unnest(%(duration_us)b::bigint[]) AS duration_us,
    unnest(%(state)b::text[]) AS state,
    unnest(%(tool_name)b::text[]) AS tool_name,
    unnest(%(tool_version)b::text[]) AS tool_version,
    unnest(%(trace_id)b::text[]) AS trace_id,
    unnest(%(parent_invocation_id)b::uuid[]) AS parent_invocation_id,
    unnest(%(call_id)b::text[]) AS call_id,
    unnest(%(tool_call_id)b::text[]) AS tool_call_id,
    unnest(%(error_type)b::text[]) AS error_type,
    unnest(%(error_code)b::text[]) AS error_code,
    unnest(%(error_message)b::text[]) AS error_message,
    unnest(%(upstream_status)b::integer[]) AS upstream_status,
    unnest(%(retry_after_ms)b::bigint[]) AS retry_after_ms,
    unnest(%(attempt)b::integer[]) AS attempt,
    unnest(%(guard_strategy)b::text[]) AS guard_strategy,
    unnest(%(guard_outcome)b::text[]) AS guard_outcome,
    unnest(%(violation_count)b::integer[]) AS violation_count,
    unnest(%(prompt_tokens)b::bigint[]) AS prompt_tokens,
    unnest(%(completion_tokens)b::bigint[]) AS completion_tokens,
    unnest(%(cache_hit)b::boolean[]) AS cache_hit,
    unnest(%(turn_id)b::text[]) AS turn_id,
    unnest(%(run_id)b::text[]) AS run_id,
    unnest(%(ingestion_run_id)b::text[]) AS ingestion_run_id,
    unnest(%(workflow_id)b::text[]) AS workflow_id,
    unnest(%(collection_id)b::text[]) AS collection_id,
    unnest(%(document_id)b::text[]) AS document_id,
    unnest(%(document_version_id)b::text[]) AS document_version_id,
    unnest(%(case_id)b::text[]) AS case_id,
    unnest(%(idempotency_key)b::text[]) AS idempotency_key,
    unnest(%(timeouts_ms)b::bigint[]) AS timeouts_ms,
    unnest(%(budget_tokens)b::bigint[]) AS budget_tokens,
    unnest(%(locale)b::text[]) AS locale,
    unnest(%(safety_mode)b::text[]) AS safety_mode,
    unnest(%(producer_id)b::text[]) AS producer_id,
    unnest(%(start_batch_id)b::uuid[]) AS start_batch_id,
    unnest(%(start_pos)b::integer[]) AS start_pos,
    unnest(%(end_batch_id)b::uuid[]) AS end_batch_id,
    unnest(%(end_pos)b::integer[]) AS end_pos,
    unnest(%(pair_conflict)b::boolean[]) AS pair_conflict,
    unnest(%(mcp_server)b::text[]) AS mcp_server,
    unnest(%(mcp_client)b::text[]) AS mcp_client,
    unnest(%(mcp_protocol)b::text[]) AS mcp_protocol,
    unnest(%(agent)b::text[]) AS agent,
    unnest(%(agent_version)b::text[]) AS agent_version,
    unnest(%(model)b::text[]) AS model,
    unnest(%(provider)b::text[]) AS provider,
    unnest(%(principal)b::text[]) AS principal,
    unnest(%(environment)b::text[]) AS environment,
    unnest(%(service)b::text[]) AS service
) AS u

-- insert_invocations --
-- Calls without any stored event.
{{insert_invocations}}

-- {{peers_of_both}} --
-- Who took part in an MCP call: what the start states counts before what the end states.
mcp_server = CASE WHEN i.start_batch_id IS NULL
                      THEN coalesce(excluded.mcp_server, i.mcp_server)
                      ELSE coalesce(i.mcp_server, excluded.mcp_server) END,
    mcp_client = CASE WHEN i.start_batch_id IS NULL
                      THEN coalesce(excluded.mcp_client, i.mcp_client)
                      ELSE coalesce(i.mcp_client, excluded.mcp_client) END,
    mcp_protocol = CASE WHEN i.start_batch_id IS NULL
                        THEN coalesce(excluded.mcp_protocol, i.mcp_protocol)
                        ELSE coalesce(i.mcp_protocol, excluded.mcp_protocol) END

-- {{is_stored_call}} --
-- Whether a row that an upsert returns was stored before. An interim event proves it, as
-- note_interims runs later than the upsert.
start_batch_id <> end_batch_id OR interim_batch_id IS NOT NULL

-- upsert_invocations --
-- A slot (start or end) that is taken stays unchanged. A row is returned only if one of its slots
-- was filled. The first event of a call, start or end, fixes the keys of the rollups: start, tool,
-- version, trace.
{{insert_invocations}}
ON CONFLICT (tenant_id, started_on, invocation_id) DO UPDATE SET
    ended_at = CASE WHEN i.end_batch_id IS NULL THEN excluded.ended_at ELSE i.ended_at END,
    duration_us = CASE WHEN i.end_batch_id IS NULL THEN excluded.duration_us ELSE i.duration_us END,
    -- An open call that waits or works keeps this state when its start arrives.
    state = CASE WHEN i.end_batch_id IS NULL AND excluded.end_batch_id IS NOT NULL
                 THEN excluded.state ELSE i.state END,
    error_type = CASE WHEN i.end_batch_id IS NULL THEN excluded.error_type ELSE i.error_type END,
    error_code = CASE WHEN i.end_batch_id IS NULL THEN excluded.error_code ELSE i.error_code END,
    error_message =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.error_message ELSE i.error_message END,
    upstream_status =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.upstream_status ELSE i.upstream_status END,
    retry_after_ms =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.retry_after_ms ELSE i.retry_after_ms END,
    attempt = CASE WHEN i.end_batch_id IS NULL THEN excluded.attempt ELSE i.attempt END,
    guard_strategy =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.guard_strategy ELSE i.guard_strategy END,
    guard_outcome =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.guard_outcome ELSE i.guard_outcome END,
    violation_count =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.violation_count ELSE i.violation_count END,
    prompt_tokens =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.prompt_tokens ELSE i.prompt_tokens END,
    completion_tokens =
        CASE WHEN i.end_batch_id IS NULL THEN excluded.completion_tokens
             ELSE i.completion_tokens END,
    cache_hit = CASE WHEN i.end_batch_id IS NULL THEN excluded.cache_hit ELSE i.cache_hit END,
    parent_invocation_id = coalesce(i.parent_invocation_id, excluded.parent_invocation_id),
    tool_call_id = coalesce(i.tool_call_id, excluded.tool_call_id),
    turn_id = coalesce(i.turn_id, excluded.turn_id),
    run_id = coalesce(i.run_id, excluded.run_id),
    ingestion_run_id = coalesce(i.ingestion_run_id, excluded.ingestion_run_id),
    workflow_id = coalesce(i.workflow_id, excluded.workflow_id),
    collection_id = coalesce(i.collection_id, excluded.collection_id),
    document_id = coalesce(i.document_id, excluded.document_id),
    document_version_id = coalesce(i.document_version_id, excluded.document_version_id),
    case_id = coalesce(i.case_id, excluded.case_id),
    idempotency_key = coalesce(i.idempotency_key, excluded.idempotency_key),
    timeouts_ms = coalesce(i.timeouts_ms, excluded.timeouts_ms),
    budget_tokens = coalesce(i.budget_tokens, excluded.budget_tokens),
    locale = coalesce(i.locale, excluded.locale),
    safety_mode = coalesce(i.safety_mode, excluded.safety_mode),
    producer_id = coalesce(i.producer_id, excluded.producer_id),
    {{peers_of_both}},
    agent = coalesce(i.agent, excluded.agent),
    agent_version = coalesce(i.agent_version, excluded.agent_version),
    model = coalesce(i.model, excluded.model),
    provider = coalesce(i.provider, excluded.provider),
    principal = coalesce(i.principal, excluded.principal),
    environment = coalesce(i.environment, excluded.environment),
    service = coalesce(i.service, excluded.service),
    start_batch_id = coalesce(i.start_batch_id, excluded.start_batch_id),
    start_pos = CASE WHEN i.start_batch_id IS NULL THEN excluded.start_pos ELSE i.start_pos END,
    end_batch_id = coalesce(i.end_batch_id, excluded.end_batch_id),
    end_pos = CASE WHEN i.end_batch_id IS NULL THEN excluded.end_pos ELSE i.end_pos END,
    pair_conflict = i.pair_conflict OR excluded.pair_conflict OR (
        i.started_at <> excluded.started_at
        OR i.tool_name <> excluded.tool_name
        OR (i.tool_version <> '' AND excluded.tool_version <> ''
            AND i.tool_version <> excluded.tool_version)
        OR i.trace_id <> excluded.trace_id
        OR i.parent_invocation_id <> excluded.parent_invocation_id
        OR (i.call_id <> excluded.call_id AND NOT starts_with(i.call_id, 'erased-'))
        OR i.tool_call_id <> excluded.tool_call_id
        OR i.turn_id <> excluded.turn_id
        OR i.run_id <> excluded.run_id
        OR i.ingestion_run_id <> excluded.ingestion_run_id
        OR i.workflow_id <> excluded.workflow_id
        OR i.collection_id <> excluded.collection_id
        OR i.document_id <> excluded.document_id
        OR i.document_version_id <> excluded.document_version_id
        OR i.case_id <> excluded.case_id
        OR i.idempotency_key <> excluded.idempotency_key
        OR i.timeouts_ms <> excluded.timeouts_ms
        OR i.budget_tokens <> excluded.budget_tokens
        OR i.locale <> excluded.locale
        OR i.safety_mode <> excluded.safety_mode
        OR i.producer_id <> excluded.producer_id
    ) IS TRUE
WHERE (i.start_batch_id IS NULL AND excluded.start_batch_id IS NOT NULL)
   OR (i.end_batch_id IS NULL AND excluded.end_batch_id IS NOT NULL)
RETURNING
    -- Without parameters: Citus cannot send any to a node beside the rows.
    started_on - date '1970-01-01', invocation_id, start_batch_id, end_batch_id,
    -- For a new row, the writer already knows the remaining columns.
    CASE WHEN {{is_stored_call}} THEN started_at END,
    CASE WHEN {{is_stored_call}} THEN ended_at END,
    CASE WHEN {{is_stored_call}} THEN duration_us END,
    CASE WHEN {{is_stored_call}} THEN state END,
    CASE WHEN {{is_stored_call}} THEN tool_name END,
    CASE WHEN {{is_stored_call}} THEN tool_version END,
    CASE WHEN {{is_stored_call}} THEN trace_id END,
    CASE WHEN {{is_stored_call}} THEN run_id END,
    CASE WHEN {{is_stored_call}} THEN error_type END,
    CASE WHEN {{is_stored_call}} THEN violation_count END,
    CASE WHEN {{is_stored_call}} THEN prompt_tokens END,
    CASE WHEN {{is_stored_call}} THEN completion_tokens END,
    CASE WHEN {{is_stored_call}} THEN cache_hit END

-- interims_of_calls --
-- Lock these calls. Returns the latest interim event of each, and the times of those known.
SELECT i.started_on - date '1970-01-01', i.invocation_id, i.interim_at, i.interim_state,
       i.interim_us
FROM unnest(%(invocation_ids)b::uuid[], %(days)b::date[]) AS wanted (invocation_id, day)
JOIN invocation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = wanted.day
 AND i.invocation_id = wanted.invocation_id
FOR UPDATE OF i

-- note_interims --
-- When the interim events of these calls were and, if the new one is later than the stored one
-- (is_later), what the call does.
UPDATE invocation AS i SET
    interim_us = string_to_array(u.times, ',')::bigint[],
    interim_state = CASE WHEN u.is_later THEN u.state ELSE i.interim_state END,
    interim_at = CASE WHEN u.is_later THEN u.at ELSE i.interim_at END,
    interim_batch_id = CASE WHEN u.is_later THEN u.batch_id ELSE i.interim_batch_id END,
    interim_pos = CASE WHEN u.is_later THEN u.position ELSE i.interim_pos END,
    state = CASE WHEN u.is_later AND i.end_batch_id IS NULL THEN u.state ELSE i.state END
FROM unnest(
    %(days)b::date[], %(invocation_ids)b::uuid[], %(is_later)b::boolean[], %(states)b::text[],
    %(at)b::timestamptz[], %(batch_ids)b::uuid[], %(positions)b::integer[], %(times)b::text[]
) AS u (day, invocation_id, is_later, state, at, batch_id, position, times)
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = u.day
  AND i.invocation_id = u.invocation_id

-- taken_slots --
-- Where in the log the events are that fill the slots of these calls. The latest interim event
-- takes the place of a missing end.
SELECT i.started_on - date '1970-01-01', i.invocation_id, i.start_batch_id, i.start_pos,
       coalesce(i.end_batch_id, i.interim_batch_id),
       CASE WHEN i.end_batch_id IS NULL THEN i.interim_pos ELSE i.end_pos END
FROM unnest(%(invocation_ids)b::uuid[], %(days)b::date[]) AS wanted (invocation_id, day)
JOIN invocation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = wanted.day
 AND i.invocation_id = wanted.invocation_id

-- calls_as_they_are --
-- Lock the calls for which a more complete report arrived. Returns their current rows.
SELECT i.started_on - date '1970-01-01', i.invocation_id, i.started_at, i.ended_at, i.duration_us, i.state,
       i.tool_name, i.tool_version, i.trace_id, i.run_id, i.error_type, i.violation_count,
       i.prompt_tokens, i.completion_tokens, i.cache_hit, true, i.end_batch_id IS NOT NULL, true
FROM unnest(%(invocation_ids)b::uuid[], %(days)b::date[]) AS wanted (invocation_id, day)
JOIN invocation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = wanted.day
 AND i.invocation_id = wanted.invocation_id
FOR UPDATE OF i

-- supersede_calls --
-- Store the more complete report of these calls. A call's start and trace stay. So does its tool,
-- unless its spans were read again. Its end never moves back, nor does that of the trace, as clocks
-- differ. If the new report has only interim events, the call is open again.
UPDATE invocation AS i SET
    tool_name = u.tool_name,
    ended_at = CASE WHEN u.end_batch_id IS NOT NULL THEN greatest(i.ended_at, u.ended_at) END,
    duration_us = u.duration_us,
    state = CASE WHEN u.end_batch_id IS NULL THEN coalesce(i.interim_state, u.state)
                 ELSE u.state END,
    error_type = u.error_type, error_code = u.error_code, error_message = u.error_message,
    violation_count = u.violation_count, prompt_tokens = u.prompt_tokens, completion_tokens = u.completion_tokens,
    parent_invocation_id = u.parent_invocation_id, call_id = u.call_id,
    tool_call_id = coalesce(i.tool_call_id, u.tool_call_id),
    run_id = coalesce(u.run_id, i.run_id), workflow_id = coalesce(u.workflow_id, i.workflow_id),
    mcp_server = coalesce(u.mcp_server, i.mcp_server),
    mcp_client = coalesce(u.mcp_client, i.mcp_client),
    mcp_protocol = coalesce(u.mcp_protocol, i.mcp_protocol),
    agent = u.agent, agent_version = u.agent_version, model = u.model, provider = u.provider,
    principal = u.principal, environment = u.environment, service = u.service,
    start_batch_id = u.start_batch_id, start_pos = u.start_pos,
    end_batch_id = u.end_batch_id, end_pos = u.end_pos
FROM unnest(
    %(started_on)b::date[], %(invocation_id)b::uuid[], %(ended_at)b::timestamptz[],
    %(duration_us)b::bigint[], %(state)b::text[], %(error_type)b::text[], %(error_code)b::text[],
    %(error_message)b::text[], %(violation_count)b::integer[], %(prompt_tokens)b::bigint[],
    %(completion_tokens)b::bigint[],
    %(parent_invocation_id)b::uuid[], %(call_id)b::text[], %(tool_call_id)b::text[],
    %(run_id)b::text[], %(workflow_id)b::text[], %(start_batch_id)b::uuid[],
    %(start_pos)b::integer[], %(end_batch_id)b::uuid[], %(end_pos)b::integer[],
    %(mcp_server)b::text[], %(mcp_client)b::text[], %(mcp_protocol)b::text[],
    %(agent)b::text[], %(agent_version)b::text[], %(model)b::text[], %(provider)b::text[],
    %(principal)b::text[], %(environment)b::text[], %(service)b::text[],
    %(tool_name)b::text[]
) AS u (
    started_on, invocation_id, ended_at, duration_us, state, error_type, error_code,
    error_message, violation_count, prompt_tokens, completion_tokens, parent_invocation_id,
    call_id, tool_call_id, run_id, workflow_id, start_batch_id, start_pos, end_batch_id, end_pos,
    mcp_server, mcp_client, mcp_protocol, agent, agent_version, model, provider, principal,
    environment, service, tool_name
)
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = u.started_on
  AND i.invocation_id = u.invocation_id
RETURNING
    i.started_on - date '1970-01-01', i.invocation_id, i.started_at, i.ended_at, i.duration_us, i.state, i.tool_name,
    i.tool_version, i.trace_id, i.run_id, i.error_type, i.violation_count, i.prompt_tokens,
    i.completion_tokens, i.cache_hit, true, i.end_batch_id IS NOT NULL, true

-- mark_absorbed_calls --
-- Mark calls that turned out to be parts of another call. A call with violations that an executor
-- reported is the executor's own, and stays.
UPDATE invocation AS i SET absorbed = true
FROM unnest(%(invocation_ids)b::uuid[], %(days)b::date[]) AS gone (invocation_id, day)
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = gone.day
  AND i.invocation_id = gone.invocation_id
  AND NOT EXISTS (
      SELECT FROM violation v
      WHERE v.tenant_id = %(tenant_id)s
        AND v.started_on = gone.day
        AND v.invocation_id = gone.invocation_id
        AND v.found_by <> 'server'
  )

-- withdraw_calls --
-- Delete the calls that were marked. The log keeps their events.
DELETE FROM invocation AS i
USING unnest(%(invocation_ids)b::uuid[], %(days)b::date[]) AS gone (invocation_id, day)
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = gone.day
  AND i.invocation_id = gone.invocation_id
  AND i.absorbed
RETURNING
    i.started_on - date '1970-01-01', i.invocation_id, i.started_at, i.ended_at, i.duration_us, i.state, i.tool_name,
    i.tool_version, i.trace_id, i.run_id, i.error_type, i.violation_count, i.prompt_tokens,
    i.completion_tokens, i.cache_hit, true, i.end_batch_id IS NOT NULL, true

-- insert_decisions --
-- Decisions about calls, in order of key. A decision that is stored already is not returned.
-- `violations` is JSON: arrays of paths, codes and expected values.
INSERT INTO decision (
    tenant_id, started_on, decision_id, decided_at, decision, invocation_id, tool_name,
    tool_version, trace_id, parent_invocation_id, call_id, tool_call_id, by_kind, by_id, by_name,
    requested_by, reason, definition_digest, violation_count, paths, codes, expected, turn_id,
    run_id, ingestion_run_id, workflow_id, collection_id, document_id, document_version_id,
    case_id, agent, agent_version, model, provider, environment, service, producer_id, batch_id, pos
)
SELECT %(tenant_id)s, started_on, decision_id, decided_at, decision, invocation_id, tool_name,
       coalesce(tool_version, ''), trace_id, parent_invocation_id, call_id, tool_call_id, by_kind,
       by_id, by_name, requested_by, reason, definition_digest, violation_count,
       ARRAY(SELECT jsonb_array_elements_text(violations::jsonb -> 0)),
       ARRAY(SELECT jsonb_array_elements_text(violations::jsonb -> 1)),
       ARRAY(SELECT jsonb_array_elements_text(violations::jsonb -> 2)),
       turn_id, run_id, ingestion_run_id, workflow_id, collection_id, document_id,
       document_version_id, case_id, agent, agent_version, model, provider, environment, service,
       producer_id, batch_id, pos
FROM unnest(
    %(started_on)b::date[], %(decision_id)b::uuid[], %(decided_at)b::timestamptz[],
    %(decision)b::text[], %(invocation_id)b::uuid[], %(tool_name)b::text[],
    %(tool_version)b::text[], %(trace_id)b::text[], %(parent_invocation_id)b::uuid[],
    %(call_id)b::text[], %(tool_call_id)b::text[], %(by_kind)b::text[], %(by_id)b::text[],
    %(by_name)b::text[], %(requested_by)b::text[], %(reason)b::text[],
    %(definition_digest)b::text[], %(violation_count)b::integer[], %(violations)b::text[],
    %(turn_id)b::text[], %(run_id)b::text[], %(ingestion_run_id)b::text[],
    %(workflow_id)b::text[], %(collection_id)b::text[], %(document_id)b::text[],
    %(document_version_id)b::text[], %(case_id)b::text[], %(agent)b::text[],
    %(agent_version)b::text[], %(model)b::text[], %(provider)b::text[], %(environment)b::text[],
    %(service)b::text[], %(producer_id)b::text[], %(batch_id)b::uuid[], %(pos)b::integer[]
) AS u (
    started_on, decision_id, decided_at, decision, invocation_id, tool_name, tool_version,
    trace_id, parent_invocation_id, call_id, tool_call_id, by_kind, by_id, by_name, requested_by,
    reason, definition_digest, violation_count, violations, turn_id, run_id, ingestion_run_id,
    workflow_id, collection_id, document_id, document_version_id, case_id, agent, agent_version,
    model, provider, environment, service, producer_id, batch_id, pos
)
ON CONFLICT DO NOTHING
RETURNING started_on - date '1970-01-01', decision_id

-- decision_places --
-- Where in the log the events of these decisions are.
SELECT d.started_on - date '1970-01-01', d.decision_id, d.batch_id, d.pos
FROM unnest(%(days)b::date[], %(decision_ids)b::uuid[]) AS wanted (day, decision_id)
JOIN decision d
  ON d.tenant_id = %(tenant_id)s
 AND d.started_on = wanted.day
 AND d.decision_id = wanted.decision_id

-- insert_violations --
-- The violations of the calls completed by this batch.
INSERT INTO violation (
    tenant_id, started_on, invocation_id, ordinal, started_at, tool_name, tool_version, path,
    path_pattern, code, severity, expected, received, strategy, outcome, found_by
)
SELECT %(tenant_id)s, started_on, invocation_id, ordinal, started_at, tool_name, tool_version,
       path, path_pattern, code, severity, expected, received, strategy, outcome, found_by
FROM unnest(
    %(started_on)b::date[], %(invocation_id)b::uuid[], %(ordinal)b::integer[],
    %(started_at)b::timestamptz[], %(tool_name)b::text[], %(tool_version)b::text[],
    %(path)b::text[], %(path_pattern)b::text[], %(code)b::text[], %(severity)b::text[],
    %(expected)b::text[], %(received)b::text[], %(strategy)b::text[], %(outcome)b::text[],
    %(found_by)b::text[]
) AS u (
    started_on, invocation_id, ordinal, started_at, tool_name, tool_version, path, path_pattern,
    code, severity, expected, received, strategy, outcome, found_by
)
ON CONFLICT DO NOTHING

-- withdraw_violations --
-- Delete what the server found in calls whose account was replaced or withdrawn, and subtract it from
-- the sums by day and kind. Returns the kinds, and the first and last call that lost one, if it was the
-- first or last call of its kind on the day.
WITH gone AS (
    DELETE FROM violation AS v
    USING unnest(%(invocation_ids)b::uuid[], %(days)b::date[]) AS old (invocation_id, day)
    WHERE v.tenant_id = %(tenant_id)s
      AND v.started_on = old.day
      AND v.invocation_id = old.invocation_id
      AND v.found_by = 'server'
    RETURNING v.started_on, v.invocation_id, v.started_at, v.tool_name, v.tool_version,
              v.path_pattern, v.code, v.strategy, v.outcome
),
by_kind AS (
    SELECT started_on, {{violation_kind}} AS kind, count(*) AS violations,
           count(DISTINCT invocation_id) AS calls, min(started_at) AS first_at,
           max(started_at) AS last_at
    FROM gone
    GROUP BY started_on, tool_name, tool_version, path_pattern, code, strategy, outcome
),
locked AS (
    SELECT d.started_on, d.kind, d.first_at, d.last_at
    FROM violation_day AS d
    JOIN by_kind AS b ON b.started_on = d.started_on AND b.kind = d.kind
    WHERE d.tenant_id = %(tenant_id)s
    ORDER BY d.started_on, d.kind
    FOR UPDATE OF d
)
UPDATE violation_day AS d SET
    violation_count = d.violation_count - b.violations,
    call_count = d.call_count - b.calls
FROM by_kind AS b
JOIN locked AS l ON l.started_on = b.started_on AND l.kind = b.kind
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on = b.started_on
  AND d.kind = b.kind
RETURNING
    d.started_on - date '1970-01-01', d.kind, d.tool_name, d.tool_version, d.path_pattern, d.code,
    d.strategy, d.outcome,
    CASE WHEN b.first_at <= l.first_at THEN b.first_at END,
    CASE WHEN b.last_at >= l.last_at THEN b.last_at END

-- settle_violation_days --
-- Determine again the first and last call of these kinds on these days.
UPDATE violation_day AS d SET first_at = v.first_at, last_at = v.last_at
FROM unnest(%(days)b::date[], %(kinds)b::uuid[]) AS u (day, kind)
JOIN violation_day AS k
  ON k.tenant_id = %(tenant_id)s
 AND k.started_on = u.day
 AND k.kind = u.kind
CROSS JOIN LATERAL (
    SELECT min(x.started_at) AS first_at, max(x.started_at) AS last_at
    FROM violation AS x
    WHERE x.tenant_id = %(tenant_id)s
      AND x.started_on = u.day
      AND x.tool_name = k.tool_name
      AND x.tool_version = k.tool_version
      AND x.path_pattern = k.path_pattern
      AND x.code = k.code
      AND x.strategy = k.strategy
      AND x.outcome = k.outcome
) AS v
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on = u.day
  AND d.kind = u.kind
  AND v.first_at IS NOT NULL

-- forget_empty_violation_days --
-- Delete the sums of these kinds of which nothing is left on their day.
DELETE FROM violation_day AS d
USING unnest(%(days)b::date[], %(kinds)b::uuid[]) AS u (day, kind)
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on = u.day
  AND d.kind = u.kind
  AND d.violation_count = 0

-- {{violation_kind}} --
-- The id of a kind of violation: a hash of its texts, separated by a zero byte, which no text
-- contains.
encode(substring(sha256(
    convert_to(tool_name, 'UTF8') || '\x00'
    || convert_to(tool_version, 'UTF8') || '\x00'
    || convert_to(path_pattern, 'UTF8') || '\x00'
    || convert_to(code, 'UTF8') || '\x00'
    || convert_to(strategy, 'UTF8') || '\x00'
    || convert_to(outcome, 'UTF8')
) FROM 1 FOR 16), 'hex')::uuid

-- upsert_violation_days --
-- Add these violations to the sums by day and kind.
INSERT INTO violation_day AS d (
    tenant_id, started_on, kind, tool_name, tool_version, path_pattern, code, strategy, outcome,
    violation_count, call_count, first_at, last_at
)
SELECT %(tenant_id)s, started_on,
       {{violation_kind}} AS kind,
       tool_name, tool_version, path_pattern, code, strategy, outcome,
       count(*), count(DISTINCT invocation_id), min(started_at), max(started_at)
FROM unnest(
    %(started_on)b::date[], %(invocation_id)b::uuid[], %(started_at)b::timestamptz[],
    %(tool_name)b::text[], %(tool_version)b::text[], %(path_pattern)b::text[], %(code)b::text[],
    %(strategy)b::text[], %(outcome)b::text[]
) AS u (
    started_on, invocation_id, started_at, tool_name, tool_version, path_pattern, code, strategy,
    outcome
)
GROUP BY started_on, tool_name, tool_version, path_pattern, code, strategy, outcome
ORDER BY started_on, kind
ON CONFLICT (tenant_id, started_on, kind) DO UPDATE SET
    violation_count = d.violation_count + excluded.violation_count,
    call_count = d.call_count + excluded.call_count,
    first_at = least(d.first_at, excluded.first_at),
    last_at = greatest(d.last_at, excluded.last_at)

-- upsert_traces --
-- Add the changed calls to their traces, per day.
INSERT INTO trace AS t (
    tenant_id, started_on, trace_id, first_started_at, last_at, first_tool_name, run_id, run_at,
    started_count, completed_count, failed_count, violation_count, prompt_tokens,
    completion_tokens, decision_count, cancelled_count
)
SELECT %(tenant_id)s, u.*
FROM unnest(
    %(started_on)b::date[], %(trace_id)b::text[], %(first_started_at)b::timestamptz[],
    %(last_at)b::timestamptz[], %(first_tool_name)b::text[], %(run_id)b::text[],
    %(run_at)b::timestamptz[], %(started_count)b::bigint[], %(completed_count)b::bigint[],
    %(failed_count)b::bigint[], %(violation_count)b::bigint[], %(prompt_tokens)b::bigint[],
    %(completion_tokens)b::bigint[], %(decision_count)b::bigint[], %(cancelled_count)b::bigint[]
) AS u
ON CONFLICT (tenant_id, started_on, trace_id) DO UPDATE SET
    first_started_at = least(t.first_started_at, excluded.first_started_at),
    last_at = greatest(t.last_at, excluded.last_at),
    first_tool_name = CASE
        WHEN excluded.first_started_at < t.first_started_at THEN excluded.first_tool_name
        WHEN excluded.first_started_at > t.first_started_at THEN t.first_tool_name
        ELSE least(t.first_tool_name COLLATE "C", excluded.first_tool_name COLLATE "C")
    END,
    run_id = CASE  -- NULL in run_at: written by an older version
        WHEN t.run_id IS NULL OR excluded.run_at < t.run_at THEN excluded.run_id
        WHEN excluded.run_id IS NULL OR excluded.run_at > t.run_at THEN t.run_id
        ELSE least(t.run_id COLLATE "C", excluded.run_id COLLATE "C")
    END,
    run_at = least(t.run_at, excluded.run_at),
    started_count = t.started_count + excluded.started_count,
    completed_count = t.completed_count + excluded.completed_count,
    failed_count = t.failed_count + excluded.failed_count,
    violation_count = t.violation_count + excluded.violation_count,
    prompt_tokens = add_capped(t.prompt_tokens, excluded.prompt_tokens),
    completion_tokens = add_capped(t.completion_tokens, excluded.completion_tokens),
    decision_count = t.decision_count + excluded.decision_count,
    cancelled_count = t.cancelled_count + excluded.cancelled_count

-- recount_traces --
-- Recompute the columns of a trace that are not sums, after calls of it were withdrawn. Concurrent
-- writers wait for the trace's row, as this transaction has already changed it.
UPDATE trace AS t SET
    first_started_at = c.first_started_at, last_at = c.last_at, first_tool_name = c.tool_name,
    run_id = c.run_id, run_at = c.run_at
FROM unnest(%(days)b::date[], %(trace_ids)b::text[]) AS changed (day, trace_id)
CROSS JOIN LATERAL (
    SELECT min(i.started_at) AS first_started_at,
           max(greatest(i.started_at, i.ended_at)) AS last_at,
           (array_agg(i.tool_name ORDER BY i.started_at, i.tool_name COLLATE "C"))[1] AS tool_name,
           (array_agg(i.run_id ORDER BY i.started_at, i.run_id COLLATE "C")
               FILTER (WHERE i.run_id IS NOT NULL))[1] AS run_id,
           min(i.started_at) FILTER (WHERE i.run_id IS NOT NULL) AS run_at
    FROM (
        SELECT started_at, ended_at, tool_name, run_id
        FROM invocation
        WHERE tenant_id = %(tenant_id)s
          AND started_on = changed.day
          AND trace_id = changed.trace_id
        UNION ALL
        SELECT decided_at, NULL, tool_name, run_id
        FROM decision
        WHERE tenant_id = %(tenant_id)s
          AND started_on = changed.day
          AND trace_id = changed.trace_id
    ) AS i
) AS c
WHERE t.tenant_id = %(tenant_id)s
  AND t.started_on = changed.day
  AND t.trace_id = changed.trace_id
  AND c.first_started_at IS NOT NULL

-- forget_empty_traces --
-- Delete a trace's row of a day if all its calls on that day were withdrawn: the row of the day
-- before has them.
DELETE FROM trace AS t
USING unnest(%(days)b::date[], %(trace_ids)b::text[]) AS changed (day, trace_id)
WHERE t.tenant_id = %(tenant_id)s
  AND t.started_on = changed.day
  AND t.trace_id = changed.trace_id
  AND t.started_count = 0
  AND t.decision_count = 0

-- upsert_quarter_rollups --
-- Add the changed calls to the counters of their quarter of an hour. A single statement for both
-- tables, which sums up the quarters, took just as long.
INSERT INTO quarter_rollup AS r (
    tenant_id, started_on, quarter_at, tool_name, tool_version, started_count, completed_count,
    failed_count, violating_call_count, violation_count, prompt_tokens, completion_tokens,
    cache_hit_count, histogram
)
SELECT %(tenant_id)s, started_on, quarter_at, tool_name, tool_version, started_count,
       completed_count, failed_count, violating_call_count, violation_count, prompt_tokens,
       completion_tokens, cache_hit_count, histogram::numeric
FROM unnest(
    %(started_on)b::date[], %(begins_at)b::timestamptz[], %(tool_name)b::text[],
    %(tool_version)b::text[], %(started_count)b::bigint[], %(completed_count)b::bigint[],
    %(failed_count)b::bigint[], %(violating_call_count)b::bigint[], %(violation_count)b::bigint[],
    %(prompt_tokens)b::bigint[], %(completion_tokens)b::bigint[], %(cache_hit_count)b::bigint[],
    %(histogram)b::text[]
) AS u (
    started_on, quarter_at, tool_name, tool_version, started_count, completed_count, failed_count,
    violating_call_count, violation_count, prompt_tokens, completion_tokens, cache_hit_count,
    histogram
)
ON CONFLICT (tenant_id, started_on, quarter_at, tool_name, tool_version) DO UPDATE SET
    started_count = r.started_count + excluded.started_count,
    completed_count = r.completed_count + excluded.completed_count,
    failed_count = r.failed_count + excluded.failed_count,
    violating_call_count = r.violating_call_count + excluded.violating_call_count,
    violation_count = r.violation_count + excluded.violation_count,
    prompt_tokens = add_capped(r.prompt_tokens, excluded.prompt_tokens),
    completion_tokens = add_capped(r.completion_tokens, excluded.completion_tokens),
    cache_hit_count = r.cache_hit_count + excluded.cache_hit_count,
    histogram = r.histogram + excluded.histogram

-- upsert_rollups --
-- Add the changed calls to the counters of their hour and to its histogram of durations, which is
-- one number (audit/index/histogram.py).
INSERT INTO rollup AS r (
    tenant_id, started_on, hour_at, tool_name, tool_version, started_count, completed_count,
    failed_count, violating_call_count, violation_count, duration_us, prompt_tokens,
    completion_tokens, cache_hit_count, histogram
)
SELECT %(tenant_id)s, started_on, hour_at, tool_name, tool_version, started_count, completed_count,
       failed_count, violating_call_count, violation_count, duration_us, prompt_tokens,
       completion_tokens, cache_hit_count, histogram::numeric
FROM unnest(
    %(started_on)b::date[], %(begins_at)b::timestamptz[], %(tool_name)b::text[],
    %(tool_version)b::text[], %(started_count)b::bigint[], %(completed_count)b::bigint[],
    %(failed_count)b::bigint[], %(violating_call_count)b::bigint[], %(violation_count)b::bigint[],
    %(duration_us)b::bigint[], %(prompt_tokens)b::bigint[], %(completion_tokens)b::bigint[],
    %(cache_hit_count)b::bigint[], %(histogram)b::text[]
) AS u (
    started_on, hour_at, tool_name, tool_version, started_count, completed_count, failed_count,
    violating_call_count, violation_count, duration_us, prompt_tokens, completion_tokens,
    cache_hit_count, histogram
)
ON CONFLICT (tenant_id, started_on, hour_at, tool_name, tool_version) DO UPDATE SET
    started_count = r.started_count + excluded.started_count,
    completed_count = r.completed_count + excluded.completed_count,
    failed_count = r.failed_count + excluded.failed_count,
    violating_call_count = r.violating_call_count + excluded.violating_call_count,
    violation_count = r.violation_count + excluded.violation_count,
    duration_us = add_capped(r.duration_us, excluded.duration_us),
    prompt_tokens = add_capped(r.prompt_tokens, excluded.prompt_tokens),
    completion_tokens = add_capped(r.completion_tokens, excluded.completion_tokens),
    cache_hit_count = r.cache_hit_count + excluded.cache_hit_count,
    histogram = r.histogram + excluded.histogram

-- upsert_error_rollups --
-- Count the failed ones among them by type of error.
INSERT INTO error_rollup AS r (
    tenant_id, started_on, hour_at, tool_name, tool_version, error_type, call_count
)
SELECT %(tenant_id)s, u.*
FROM unnest(
    %(started_on)b::date[], %(hour_at)b::timestamptz[], %(tool_name)b::text[],
    %(tool_version)b::text[], %(error_type)b::text[], %(call_count)b::bigint[]
) AS u
ON CONFLICT (tenant_id, started_on, hour_at, tool_name, tool_version, error_type) DO UPDATE SET
    call_count = r.call_count + excluded.call_count

-- insert_gaps --
-- Losses that producers declare. A gap that is already stored is not returned.
INSERT INTO gap (tenant_id, producer_id, from_seq, to_seq, reason, lost_count, heard_at)
SELECT %(tenant_id)s, producer_id, from_seq, to_seq, reason, lost_count, %(now)s
FROM unnest(
    %(producer_id)b::text[], %(from_seq)b::bigint[], %(to_seq)b::bigint[], %(reason)b::text[],
    %(lost_count)b::bigint[]
) AS u (producer_id, from_seq, to_seq, reason, lost_count)
ON CONFLICT DO NOTHING
RETURNING producer_id, from_seq, to_seq

-- upsert_producers --
-- The first and last sequence number of each producer, and its number of events. The order of
-- batches does not change the result.
INSERT INTO producer AS p (
    tenant_id, producer_id, first_seq, last_seq, event_count, last_heard_at
)
SELECT %(tenant_id)s, producer_id, first_seq, last_seq, event_count, %(now)s
FROM unnest(
    %(producer_id)b::text[], %(first_seq)b::bigint[], %(last_seq)b::bigint[],
    %(event_count)b::bigint[]
) AS u (producer_id, first_seq, last_seq, event_count)
ON CONFLICT (tenant_id, producer_id) DO UPDATE SET
    first_seq = least(p.first_seq, excluded.first_seq),
    last_seq = greatest(p.last_seq, excluded.last_seq),
    event_count = p.event_count + excluded.event_count,
    last_heard_at = greatest(p.last_heard_at, excluded.last_heard_at)

-- insert_rejected --
-- Lines for the inbox.
INSERT INTO rejected_event (
    tenant_id, id, received_at, batch_id, line, event_id, code, message, raw, raw_length
)
SELECT %(tenant_id)s, id, %(now)s, batch_id, line, event_id, code, message, raw, raw_length
FROM unnest(
    %(id)b::uuid[], %(batch_id)b::uuid[], %(line)b::integer[], %(event_id)b::uuid[], %(code)b::text[],
    %(message)b::text[], %(raw)b::bytea[], %(raw_length)b::integer[]
) AS u (id, batch_id, line, event_id, code, message, raw, raw_length)
ON CONFLICT DO NOTHING

-- advance_ledger --
-- Lock the tenant's ledger head and advance it. The lock puts batches in order until commit.
INSERT INTO ledger_head AS h (tenant_id, size)
VALUES (%(tenant_id)s, %(event_count)s)
ON CONFLICT (tenant_id) DO UPDATE SET size = h.size + excluded.size
RETURNING size

-- append_batches --
-- Append rows to the log. Locks the tenant's ledger head, which puts batches in order until commit,
-- and advances it. It is one statement, as other writers for the tenant wait from here until the
-- commit. The leaves and the payloads of all rows are one value each: on a cluster, values reach a
-- node as text, and an array of byte strings is written and parsed character by character.
WITH head AS (
    INSERT INTO ledger_head AS h (tenant_id, size)
    VALUES (%(tenant_id)s, %(event_count)b::bigint)
    ON CONFLICT (tenant_id) DO UPDATE SET size = h.size + excluded.size
    RETURNING size - %(event_count)b::bigint AS size_before
)
INSERT INTO batch (
    tenant_id, batch_on, batch_id, received_at, first_index, event_count, body_sha256, answer,
    leaves, payload
)
SELECT %(tenant_id)s, u.batch_on, u.batch_id, %(now)s, size_before + u.events_before,
       u.event_count, u.body_sha256, u.answer,
       substring(%(leaves)b::bytea FROM 32 * u.events_before + 1 FOR 32 * u.event_count),
       substring(%(payloads)b::bytea FROM u.bytes_before + 1 FOR u.byte_count)
FROM head
CROSS JOIN unnest(
    %(batch_on)b::date[], %(batch_id)b::uuid[], %(events_before)b::integer[],
    %(event_counts)b::integer[], %(body_sha256)b::bytea[], %(answer)b::text[],
    %(bytes_before)b::integer[], %(byte_counts)b::integer[]
) AS u (
    batch_on, batch_id, events_before, event_count, body_sha256, answer, bytes_before, byte_count
)
RETURNING batch_id, first_index, event_count
