-- archive_begin --
-- When the entry at an index was received.
SELECT received_at
FROM batch
WHERE tenant_id = %(tenant_id)s AND first_index <= %(index)s AND event_count > 0
ORDER BY first_index DESC
LIMIT 1

-- archive_day_end --
-- Where the entries received from an instant on begin, behind an index; and the size of the log.
SELECT (
           SELECT min(first_index)
           FROM batch
           WHERE tenant_id = %(tenant_id)s
             AND first_index > %(index)s
             AND received_at >= %(midnight)s
             AND event_count > 0
       ),
       (SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s)

-- archive_facts --
-- Of some calls, what no erasure clears. Leaves out what may name a person, although it stays in the
-- index: nobody can take it back from a locked object.
SELECT i.invocation_id, i.started_at, i.ended_at, i.duration_us, i.state, i.tool_name, i.tool_version,
       i.trace_id, i.parent_invocation_id, i.error_type, i.error_code, i.upstream_status, i.attempt,
       i.violation_count, i.prompt_tokens, i.completion_tokens, i.environment, i.service, i.agent,
       i.agent_version, i.model, i.provider
FROM invocation i
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on BETWEEN %(first_day)s AND %(last_day)s
  AND i.invocation_id = ANY(%(invocation_ids)b)
ORDER BY i.started_at, i.invocation_id
