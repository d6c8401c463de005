-- {{decision_columns}} --
-- The columns of a decision on pages.
d.started_on, d.decision_id, d.decided_at, d.decision, d.invocation_id, d.tool_name,
       d.tool_version, d.trace_id, d.tool_call_id, d.by_kind, d.by_id, d.by_name, d.requested_by,
       d.reason, d.definition_digest, d.violation_count, d.paths, d.codes, d.expected, d.batch_id,
       d.pos

-- decision_place --
-- Where in the log a decision's event is.
SELECT batch_id, pos
FROM decision
WHERE tenant_id = %(tenant_id)s AND started_on = %(started_on)s AND decision_id = %(decision_id)s

-- {{decisions_by_id}} --
-- The latest decisions about a call's id.
(
    SELECT {{decision_columns}}
    FROM decision d
    WHERE d.tenant_id = %(tenant_id)s
      AND d.invocation_id >= %(invocation_id)s
      AND d.invocation_id <= %(invocation_id)s
    ORDER BY d.invocation_id DESC, d.decided_at DESC
    LIMIT %(limit)s
)

-- decisions_of_own_call --
-- The latest decisions about a call without a provider's id. Planned once, like trace_calls. The
-- half that is left out takes 0.8 ms, as it reads each partition.
{{decisions_by_id}}

-- decisions_of_call --
-- The latest decisions about a call: by its id, or by the provider's id in its trace. Planned once,
-- like trace_calls.
{{decisions_by_id}}
UNION ALL
(
    SELECT {{decision_columns}}
    FROM decision d
    WHERE d.tenant_id = %(tenant_id)s
      AND d.trace_id >= %(trace_id)s
      AND d.trace_id <= %(trace_id)s
      AND d.tool_call_id = %(tool_call_id)s
      AND d.invocation_id <> %(invocation_id)s
    ORDER BY d.trace_id DESC, d.decided_at DESC
    LIMIT %(limit)s
)

-- latest_decisions --
-- The latest decision about each of some calls.
SELECT DISTINCT ON (d.invocation_id) {{decision_columns}}
FROM decision d
WHERE d.tenant_id = %(tenant_id)s AND d.invocation_id = ANY(%(invocation_ids)s)
ORDER BY d.invocation_id, d.decided_at DESC, d.decision_id DESC

-- decided_day --
-- The day of the latest decision about a call.
SELECT started_on
FROM decision
WHERE tenant_id = %(tenant_id)s AND invocation_id = %(invocation_id)s
ORDER BY decided_at DESC, decision_id DESC
LIMIT 1

-- {{call_of_timeline}} --
-- The columns of a call in a timeline.
started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name, tool_version,
       trace_id, parent_invocation_id, call_id, error_type, error_code, error_message,
       upstream_status, retry_after_ms, attempt, guard_strategy, guard_outcome, violation_count,
       prompt_tokens, completion_tokens, cache_hit, timeouts_ms, run_id

-- trace_unrun_calls --
-- The calls of a trace that were decided about and did not run, in the order of their decisions.
SELECT {{call_of_timeline}}
FROM ({{unrun_call}}) AS unrun
WHERE trace_id = %(trace_id)s
ORDER BY started_at, invocation_id
LIMIT %(limit)s

-- unrun_call_detail --
-- One call that did not run, by its id and the day of its latest decision, with the columns of a
-- call's page.
SELECT {{call_of_timeline}}, tool_call_id, turn_id, ingestion_run_id, workflow_id, collection_id,
       document_id, document_version_id, case_id, NULL AS idempotency_key, budget_tokens,
       NULL AS locale, NULL AS safety_mode, producer_id, start_batch_id, start_pos, end_batch_id,
       end_pos, pair_conflict, NULL AS interim_state, NULL AS interim_at, NULL AS interim_batch_id,
       NULL AS interim_pos, mcp_server, mcp_client, mcp_protocol, agent, agent_version,
       model, provider, principal, environment, service
FROM ({{unrun_call}}) AS unrun
WHERE invocation_id = %(invocation_id)s

-- newest_decision --
-- When a tenant's newest decision was made; no row without any. Many tenants have none, and the
-- statements about decisions take 5 to 20 ms to plan for a month of partitions. Planned once, and
-- ordered, so that it reads an index of each partition.
SELECT decided_at
FROM decision
WHERE tenant_id = %(tenant_id)s
ORDER BY decided_at DESC, decision_id DESC
LIMIT 1

-- unrun_counted --
-- Calls that were decided about and did not run, by tool and their latest decision: those whose
-- latest decision was made in a range.
SELECT d.tool_name, d.decision, count(*)
FROM decision d
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on BETWEEN %(first_day)s AND %(last_day)s
  AND d.decided_at >= %(start)s
  AND d.decided_at < %(end)s
  AND (%(tool)s::text IS NULL OR d.tool_name = %(tool)s)
  AND {{decision_is_last}}
  AND NOT {{decided_call_ran}}
GROUP BY d.tool_name, d.decision
