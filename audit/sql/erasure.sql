-- erasure_begin --
-- The first index in the log where events of these calls may be, and the size of the log.
SELECT (
           SELECT min(first_index)
           FROM batch
           WHERE tenant_id = %(tenant_id)s
             AND batch_on >= %(first_day)s
             AND received_at >= %(first_at)s
             AND event_count > 0
       ),
       (SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s)

-- erasure_listed_calls --
-- The calls that the preview of an erasure found.
SELECT started_at, invocation_id
FROM erasure_call
WHERE tenant_id = %(tenant_id)s AND erasure_id = %(erasure_id)s
ORDER BY started_at, invocation_id

-- erasure_merged_spans --
-- The spans that were merged into calls of an erasure: such a call's id, and the span's.
SELECT s.invocation_id, s.span_uuid
FROM erasure_call c
JOIN otlp_span s
  ON s.tenant_id = %(tenant_id)s
 AND s.started_on BETWEEN (c.started_at AT TIME ZONE 'UTC')::date - 1
                      AND (c.started_at AT TIME ZONE 'UTC')::date + 1
 AND s.invocation_id = c.invocation_id
WHERE c.tenant_id = %(tenant_id)s AND c.erasure_id = %(erasure_id)s

-- erasure_lock_calls --
-- Lock some calls, in the same order as ingest. Returns where their events are in the log, and
-- whether a hold covers them.
SELECT i.started_on - date '1970-01-01', i.invocation_id, i.start_batch_id, i.start_pos,
       i.end_batch_id, i.end_pos, {{call_is_held}}
FROM invocation i
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = ANY(%(days)b)
  AND i.invocation_id = ANY(%(invocation_ids)b)
ORDER BY i.started_on, i.invocation_id
FOR UPDATE OF i

-- erasure_decisions --
-- The decisions about some calls, where their events are in the log, and whether a hold covers
-- them. They never change, so that they need no lock.
SELECT d.started_on - date '1970-01-01', d.decision_id, d.invocation_id, d.batch_id, d.pos,
       {{decision_is_held}}
FROM decision d
WHERE d.tenant_id = %(tenant_id)s AND d.invocation_id = ANY(%(invocation_ids)b)

-- erasure_decided_calls --
-- The calls of decisions that name some calls by the provider's id, and when they were decided
-- about: such a decision does not know the id of the call that ran.
SELECT max(d.decided_at), d.invocation_id
FROM unnest(%(trace_ids)b::text[], %(tool_call_ids)b::text[]) AS u (trace_id, tool_call_id)
JOIN decision d
  ON d.tenant_id = %(tenant_id)s
 AND d.trace_id = u.trace_id COLLATE "C"
 AND d.tool_call_id = u.tool_call_id
GROUP BY d.invocation_id

-- erasure_blank_decisions --
-- Blank what the index quotes or derives from the payloads of these decisions. Runs as the keeper.
UPDATE decision d
SET call_id = NULL, reason = NULL, expected = '{}', requested_by = NULL
FROM unnest(%(days)b::date[], %(decision_ids)b::uuid[]) AS u (started_on, decision_id)
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on = u.started_on
  AND d.decision_id = u.decision_id

-- erasure_blank_calls --
-- Blank what the index quotes or derives from these calls' payloads. The call id becomes one that
-- no other call has. Runs as the keeper.
UPDATE invocation i
SET call_id = 'erased-' || i.invocation_id::text, error_message = NULL, idempotency_key = NULL,
    principal = NULL
FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE i.tenant_id = %(tenant_id)s
  AND i.started_on = u.started_on
  AND i.invocation_id = u.invocation_id

-- erasure_blank_violations --
-- Blank what the violations of these calls quote from payloads.
UPDATE violation v
SET expected = '', received = ''
FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE v.tenant_id = %(tenant_id)s
  AND v.started_on = u.started_on
  AND v.invocation_id = u.invocation_id

-- erasure_clear_notes --
-- Clear the texts of notes about these calls, and about their traces. Label, assignee and state stay.
-- Runs as the keeper.
UPDATE note n
SET text = '', is_erased = TRUE, salt = %(salt)s
WHERE n.tenant_id = %(tenant_id)s
  AND n.text <> ''
  AND (n.invocation_id = ANY(%(invocation_ids)b::uuid[])
       OR n.about = 'trace' AND n.trace_id IN (
           SELECT i.trace_id
           FROM invocation i
           WHERE i.tenant_id = %(tenant_id)s
             AND i.started_on = ANY(%(days)b::date[])
             AND i.invocation_id = ANY(%(invocation_ids)b::uuid[])
           UNION
           SELECT d.trace_id
           FROM decision d
           WHERE d.tenant_id = %(tenant_id)s
             AND d.invocation_id = ANY(%(invocation_ids)b::uuid[])
       ))
RETURNING n.id

-- erasure_clear_cases --
-- Clear the copies of these calls in regression sets. Runs as the keeper.
UPDATE tool_regression_case c
SET args = '', output = '', is_erased = TRUE
FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE c.tenant_id = %(tenant_id)s
  AND c.started_on = u.started_on
  AND c.invocation_id = u.invocation_id

-- erasure_clear_samples --
-- Clear the texts about these calls in auditors' samples, which may quote them. Conclusions stay. Runs as
-- the keeper.
UPDATE audit_sample_call c
SET note = '', exception = '', salt = '', is_erased = TRUE
FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE c.tenant_id = %(tenant_id)s
  AND c.started_on = u.started_on
  AND c.invocation_id = u.invocation_id
  AND NOT c.is_erased
RETURNING c.sample_id, c.position

-- erasure_clear_incidents --
-- Clear the timelines of incidents with a trace of these calls. Runs as the keeper.
UPDATE incident n
SET timeline = '', page = '', is_erased = TRUE
WHERE n.tenant_id = %(tenant_id)s
  AND NOT n.is_erased
  AND n.trace_ids && ARRAY(
      SELECT i.trace_id::text
      FROM invocation i
      WHERE i.tenant_id = %(tenant_id)s
        AND i.started_on = ANY(%(days)b::date[])
        AND i.invocation_id = ANY(%(invocation_ids)b::uuid[])
      UNION
      SELECT d.trace_id::text
      FROM decision d
      WHERE d.tenant_id = %(tenant_id)s
        AND d.invocation_id = ANY(%(invocation_ids)b::uuid[])
  )
RETURNING n.id

-- erasure_blank_spans --
-- Blank what the spans of these calls, and those above them, say of the calls below: it names users.
-- Spans of other calls keep theirs. What arrives later below these spans inherits nothing from them.
WITH RECURSIVE above AS (
    SELECT s.started_on, s.span_uuid, s.parent_uuid, s.invocation_id
    FROM unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
    JOIN otlp_span s
      ON s.tenant_id = %(tenant_id)s
     AND s.started_on BETWEEN u.started_on - 1 AND u.started_on + 1
     AND (s.invocation_id = u.invocation_id OR s.span_uuid = u.invocation_id)
    UNION
    SELECT p.started_on, p.span_uuid, p.parent_uuid, p.invocation_id
    FROM above a
    JOIN otlp_span p
      ON p.tenant_id = %(tenant_id)s
     AND p.started_on BETWEEN a.started_on - 1 AND a.started_on + 1
     AND p.span_uuid = a.parent_uuid
)
UPDATE otlp_span s
SET context = NULL
FROM above a
WHERE s.tenant_id = %(tenant_id)s
  AND s.started_on = a.started_on
  AND s.span_uuid = a.span_uuid
  AND s.context IS NOT NULL
  AND (s.invocation_id IS NULL OR s.invocation_id = ANY(%(invocation_ids)b::uuid[]))

-- erasure_forget_hits --
-- Delete the matches of payload searches in these calls. Runs as the keeper.
DELETE FROM payload_search_hit h
USING unnest(%(days)b::date[], %(invocation_ids)b::uuid[]) AS u (started_on, invocation_id)
WHERE h.tenant_id = %(tenant_id)s
  AND (h.started_at AT TIME ZONE 'UTC')::date = u.started_on
  AND h.invocation_id = u.invocation_id

-- erasure_next_batches --
-- The next batches of the log to search for events of these calls.
SELECT batch_id, first_index + event_count
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND first_index >= %(next_index)s
  AND first_index < %(end_index)s
  AND event_count > 0
ORDER BY first_index
LIMIT %(batch_limit)s

-- erasure_next_lines --
-- The next rejected lines that still have their text.
SELECT id, raw, received_at
FROM rejected_event
WHERE tenant_id = %(tenant_id)s AND id > %(after)s AND raw <> ''
ORDER BY id
LIMIT %(row_limit)s

-- erasure_blank_lines --
-- Blank the rejected lines of these calls. Their resolution stays. Runs as the keeper.
UPDATE rejected_event r SET raw = ''
WHERE r.tenant_id = %(tenant_id)s AND r.id = ANY(%(ids)b)
