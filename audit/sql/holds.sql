-- {{call_is_held}} --
-- Whether a hold in force covers the call `i`. The rule is the one of
-- audit/retention/hold_match.py; a test compares the two.
EXISTS (
    SELECT FROM legal_hold h
    WHERE h.tenant_id = %(tenant_id)s
      AND h.released_at IS NULL
      AND (h.trace_id IS NULL OR h.trace_id = i.trace_id)
      AND (h.case_id IS NULL OR h.case_id = i.case_id)
      AND (h.tool_name IS NULL OR h.tool_name = i.tool_name)
      AND (h.since IS NULL OR i.started_at >= h.since)
      AND (h.until IS NULL OR i.started_at < h.until)
)

-- record_lock --
-- Lock the tenant's settings, so that erasures and changes of holds run one after the other.
-- Returns how far retention has come.
SELECT erased_to FROM tenant_setting WHERE tenant_id = %(tenant_id)s FOR UPDATE

-- {{decision_is_held}} --
-- Whether a hold in force covers the decision `d`, or the call that it is about.
(EXISTS (
    SELECT FROM (
        SELECT d.trace_id, d.case_id, d.tool_name, d.decided_at AS started_at
    ) AS i
    WHERE {{call_is_held}}
) OR EXISTS (
    SELECT FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
      AND i.started_on BETWEEN d.started_on - 7 AND d.started_on + 7
      AND i.invocation_id = d.invocation_id
      AND {{call_is_held}}
) OR (d.tool_call_id IS NOT NULL AND EXISTS (
    SELECT FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
      AND i.started_on BETWEEN d.started_on - 7 AND d.started_on + 7
      AND i.trace_id = d.trace_id
      AND i.tool_call_id = d.tool_call_id
      AND {{call_is_held}}
)))

-- held_calls --
-- The calls, among the given ones, that a hold covers according to the index: by their own row or
-- by that of a decision about them.
SELECT i.invocation_id
FROM invocation i
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on BETWEEN %(first_day)s AND %(last_day)s
  AND i.invocation_id = ANY(%(invocation_ids)b)
  AND {{call_is_held}}
UNION
SELECT d.invocation_id
FROM decision d
WHERE d.tenant_id = %(tenant_id)s
  AND d.invocation_id = ANY(%(invocation_ids)b)
  AND {{decision_is_held}}

-- first_left_behind --
-- The first events that retention has passed but kept, because a hold covered some of them.
SELECT first_index
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND first_index < %(erased_to)s
  AND payload IS NOT NULL
  AND NOT is_own
  AND event_count > 0
ORDER BY first_index
LIMIT 1

-- batches_at --
-- Some batches of executors with their payloads, in the order of the log.
SELECT batch_id, received_at, first_index, event_count, leaves, payload, is_own
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND batch_on = ANY(%(days)b)
  AND batch_id = ANY(%(batch_ids)b)
  AND NOT is_own
ORDER BY first_index

-- replace_payloads --
-- Replace payloads from which events were erased; NULL if no event is left. Runs as the keeper.
UPDATE batch b SET payload = u.payload
FROM unnest(%(days)b::date[], %(batch_ids)b::uuid[], %(payloads)b::bytea[])
    AS u (batch_on, batch_id, payload)
WHERE b.tenant_id = %(tenant_id)s
  AND b.batch_on = u.batch_on
  AND b.batch_id = u.batch_id
  AND NOT b.is_own

-- note_ledger_erasure --
-- Store the span of events that the entry at an index declares erased.
INSERT INTO ledger_erasure (tenant_id, entry_index, begin_index, end_index, erasure_id)
VALUES (
    %(tenant_id)s, %(entry_index)s, %(begin_index)s, %(end_index)s, %(erasure_id)s::uuid
)
