-- incident_calls --
-- The calls of a trace with what a timeline says of them, in the order of their starts. Planned once,
-- like trace_calls.
SELECT started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name, tool_version,
       agent, agent_version, model, error_type, error_code, violation_count
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND trace_id >= %(trace_id)s
  AND trace_id <= %(trace_id)s
ORDER BY trace_id, started_at, invocation_id
LIMIT %(limit)s

-- incident_decisions --
-- The decisions about calls of a trace, in their order, without their reasons, which may quote
-- arguments.
SELECT decided_at, decision, invocation_id, tool_name, tool_version, by_kind, by_id, by_name,
       requested_by
FROM decision
WHERE tenant_id = %(tenant_id)s
  AND trace_id >= %(trace_id)s
  AND trace_id <= %(trace_id)s
ORDER BY trace_id, decided_at, decision_id
LIMIT %(limit)s

-- incident_violations --
-- The violations of some calls, without what was expected and received.
SELECT invocation_id, tool_name, tool_version, path, code, severity, strategy, outcome, found_by
FROM violation
WHERE tenant_id = %(tenant_id)s
  AND started_on = ANY(%(days)s)
  AND invocation_id = ANY(%(invocation_ids)s)
ORDER BY started_on, invocation_id, ordinal
