-- erasure_begin --
-- Where in the log events of calls that began then may lie at the earliest; and its end.
SELECT (
           SELECT min(first_index)
           FROM batch
           WHERE tenant_id = %(tenant_id)s
             AND batch_on >= %(first_day)s
             AND received_at >= %(first_at)s
             AND event_count > 0
       ),
       (SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s)

-- erasure_targets --
-- The invocations an erasure is of; a span that was merged into a call counts as one, too.
SELECT invocation_id
FROM erasure_call
WHERE tenant_id = %(tenant_id)s AND erasure_id = %(erasure_id)s
UNION
SELECT s.span_uuid
FROM erasure_call c
JOIN otlp_span s
  ON s.tenant_id = %(tenant_id)s
 AND s.started_on BETWEEN (c.started_at AT TIME ZONE 'UTC')::date - 1
                      AND (c.started_at AT TIME ZONE 'UTC')::date + 1
 AND s.invocation_id = c.invocation_id
WHERE c.tenant_id = %(tenant_id)s AND c.erasure_id = %(erasure_id)s

-- erasure_next_calls --
-- The next calls an erasure is of.
SELECT started_at, invocation_id
FROM erasure_call
WHERE tenant_id = %(tenant_id)s
  AND erasure_id = %(erasure_id)s
  AND (
      %(at)s::timestamptz IS NULL
      OR (started_at, invocation_id) > (%(at)s::timestamptz, %(id)s::uuid)
  )
ORDER BY started_at, invocation_id
LIMIT %(row_limit)s

-- erasure_lock_calls --
-- Where the events of some calls lie, and whether they are held. In ingest's order.
SELECT i.started_on - date '1970-01-01', i.invocation_id, i.start_batch_id, i.start_pos,
       i.end_batch_id, i.end_pos, {{call_is_held}}
FROM invocation i
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = ANY(%(days)b)
  AND i.invocation_id = ANY(%(invocation_ids)b)
ORDER BY i.started_on, i.invocation_id
FOR UPDATE OF i

-- erasure_blank_calls --
-- What the index quotes of these calls' payloads, or derives from them. The call id becomes one
-- that no other call has. As the keeper.
UPDATE invocation i
SET call_id = 'erased-' || i.invocation_id::text, error_message = NULL, idempotency_key = NULL
FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = u.started_on
  AND i.invocation_id = u.invocation_id

-- erasure_blank_violations --
-- The same of their violations.
UPDATE violation v
SET expected = '', received = ''
FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE v.tenant_id = %(tenant_id)s
  AND v.started_on = u.started_on
  AND v.invocation_id = u.invocation_id

-- erasure_forget_hits --
-- That searches in payloads found something in these calls. As the keeper.
DELETE FROM payload_search_hit h
USING unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE h.tenant_id = %(tenant_id)s
  AND (h.started_at AT TIME ZONE 'UTC')::date = u.started_on
  AND h.invocation_id = u.invocation_id

-- erasure_next_batches --
-- The next batches of the log that are looked at for events of these calls.
SELECT batch_id, first_index + event_count
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND first_index >= %(next_index)s
  AND first_index < %(end_index)s
  AND event_count > 0
ORDER BY first_index
LIMIT %(batch_limit)s

-- erasure_next_lines --
-- The next refused lines that still have their text.
SELECT id, raw, received_at
FROM rejected_event
WHERE tenant_id = %(tenant_id)s AND id > %(after)s AND raw <> ''
ORDER BY id
LIMIT %(row_limit)s

-- erasure_blank_lines --
-- Refused lines of these calls; what became of them stays. As the keeper.
UPDATE rejected_event r SET raw = ''
WHERE r.tenant_id = %(tenant_id)s AND r.id = ANY(%(ids)b)
