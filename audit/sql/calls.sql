-- trace_calls --
-- The calls of a trace for its timeline, sorted by start. The statement is planned once for all
-- partitions. For an empty partition the planner considers all indexes equally good, but a range of
-- one trace, sorted in the order of its index, can only use that index.
SELECT started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
       tool_version, trace_id, parent_invocation_id, call_id, error_type, error_code,
       error_message, upstream_status, retry_after_ms, attempt, guard_strategy, guard_outcome,
       violation_count, prompt_tokens, completion_tokens, cache_hit, timeouts_ms, run_id
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND trace_id >= %(trace_id)s
  AND trace_id <= %(trace_id)s
ORDER BY trace_id, started_at, invocation_id
LIMIT %(limit)s

-- first_violations --
-- The first violation of each of some calls: the path and code shown in their rows.
SELECT DISTINCT ON (invocation_id) invocation_id, path, code
FROM violation
WHERE tenant_id = %(tenant_id)s
  AND started_on = ANY(%(days)s)
  AND invocation_id = ANY(%(invocation_ids)s)
ORDER BY invocation_id, ordinal

-- call --
-- One call, by the key in its page's address.
SELECT started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
       tool_version, trace_id, parent_invocation_id, call_id, error_type, error_code,
       error_message, upstream_status, retry_after_ms, attempt, guard_strategy, guard_outcome,
       violation_count, prompt_tokens, completion_tokens, cache_hit, timeouts_ms, run_id,
       tool_call_id, turn_id, ingestion_run_id, workflow_id, collection_id, document_id,
       document_version_id, case_id, idempotency_key, budget_tokens, locale, safety_mode,
       producer_id, start_batch_id, start_pos, end_batch_id, end_pos, pair_conflict,
       interim_state, interim_at, interim_batch_id, interim_pos, mcp_server, mcp_client,
       mcp_protocol, agent, agent_version, model, provider, principal, environment, service
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND started_on = %(started_on)s
  AND invocation_id = %(invocation_id)s

-- call_violations --
-- All violations of one call, in the order they were found.
SELECT ordinal, path, code, severity, expected, received, strategy, outcome, found_by
FROM violation
WHERE tenant_id = %(tenant_id)s
  AND started_on = %(started_on)s
  AND invocation_id = %(invocation_id)s
ORDER BY ordinal

-- calls_alike --
-- Other calls of the same tool with the same arguments, newest first. Planned once, like
-- trace_calls.
SELECT started_on, invocation_id, started_at, state, violation_count, trace_id
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND call_id >= %(call_id)s
  AND call_id <= %(call_id)s
  AND NOT (started_on = %(started_on)s AND invocation_id = %(invocation_id)s)
ORDER BY call_id DESC, started_at DESC
LIMIT %(limit)s

-- failures_beside --
-- The failed or violating call just before and just after a call, in its trace. A call is in the
-- partition of its start day, so each half of the statement skips the days on the other side.
(
    SELECT 'previous', started_on, invocation_id
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND trace_id = %(trace_id)s
      AND started_on <= %(started_on)s
      AND (started_at, invocation_id) < (%(started_at)s, %(invocation_id)s)
      AND (state = 'failed' OR violation_count > 0)
    ORDER BY started_at DESC, invocation_id DESC
    LIMIT 1
)
UNION ALL
(
    SELECT 'next', started_on, invocation_id
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND trace_id = %(trace_id)s
      AND started_on >= %(started_on)s
      AND (started_at, invocation_id) > (%(started_at)s, %(invocation_id)s)
      AND (state = 'failed' OR violation_count > 0)
    ORDER BY started_at, invocation_id
    LIMIT 1
)
