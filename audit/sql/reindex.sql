-- log_size --
-- How many events the tenant's log has.
SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s

-- log_batches --
-- The next batches in the order of the log.
SELECT batch_id, received_at, first_index, event_count, leaves, payload, is_own
FROM batch
WHERE tenant_id = %(tenant_id)s AND first_index >= %(next_index)s AND event_count > 0
ORDER BY first_index
LIMIT %(batch_limit)s

-- note_lost_places --
-- Note the positions in a batch whose events cannot be read.
INSERT INTO lost_place (tenant_id, batch_id, position)
SELECT %(tenant_id)s, %(batch_id)s, unnest(%(positions)s::integer[])

-- keep_calls --
-- Note the calls with an event that can no longer be read: only their index rows still have its
-- data. Returns how many there are.
WITH kept AS (
    INSERT INTO kept_call (started_on, invocation_id)
    SELECT i.started_on, i.invocation_id
    FROM public.invocation i
    JOIN lost_place p ON p.batch_id = i.start_batch_id AND p.position = i.start_pos
    WHERE i.tenant_id = %(tenant_id)s
    UNION
    SELECT i.started_on, i.invocation_id
    FROM public.invocation i
    JOIN lost_place p ON p.batch_id = i.end_batch_id AND p.position = i.end_pos
    WHERE i.tenant_id = %(tenant_id)s
    UNION
    SELECT i.started_on, i.invocation_id
    FROM public.invocation i
    JOIN lost_place p ON p.batch_id = i.interim_batch_id AND p.position = i.interim_pos
    WHERE i.tenant_id = %(tenant_id)s
    RETURNING 1
)
SELECT count(*) FROM kept

-- forget_kept_violations --
-- Delete what was rebuilt for kept calls from their other event, on their day or a neighbouring
-- one.
DELETE FROM pg_temp.violation v
USING kept_call k
WHERE v.tenant_id = %(tenant_id)s
  AND v.invocation_id = k.invocation_id
  AND v.started_on BETWEEN k.started_on - 1 AND k.started_on + 1

-- forget_kept_calls --
-- Delete the rebuilt rows of kept calls in the same way.
DELETE FROM pg_temp.invocation i
USING kept_call k
WHERE i.tenant_id = %(tenant_id)s
  AND i.invocation_id = k.invocation_id
  AND i.started_on BETWEEN k.started_on - 1 AND k.started_on + 1

-- copy_kept_calls --
-- Copy the rows of kept calls unchanged.
INSERT INTO pg_temp.invocation
SELECT i.*
FROM public.invocation i
JOIN kept_call k ON k.started_on = i.started_on AND k.invocation_id = i.invocation_id
WHERE i.tenant_id = %(tenant_id)s
ON CONFLICT DO NOTHING

-- copy_kept_violations --
-- Copy the violations of kept calls unchanged.
INSERT INTO pg_temp.violation
SELECT v.*
FROM public.violation v
JOIN kept_call k ON k.started_on = v.started_on AND k.invocation_id = v.invocation_id
WHERE v.tenant_id = %(tenant_id)s
ON CONFLICT DO NOTHING

-- keep_decisions --
-- Note the decisions whose event can no longer be read.
INSERT INTO kept_decision (started_on, decision_id)
SELECT d.started_on, d.decision_id
FROM public.decision d
JOIN lost_place p ON p.batch_id = d.batch_id AND p.position = d.pos
WHERE d.tenant_id = %(tenant_id)s

-- forget_kept_decisions --
-- Delete the rebuilt rows of these decisions, in case a later copy of the event still can be read.
DELETE FROM pg_temp.decision d
USING kept_decision k
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on = k.started_on
  AND d.decision_id = k.decision_id

-- copy_kept_decisions --
-- Copy the rows of these decisions unchanged.
INSERT INTO pg_temp.decision
SELECT d.*
FROM public.decision d
JOIN kept_decision k ON k.started_on = d.started_on AND k.decision_id = d.decision_id
WHERE d.tenant_id = %(tenant_id)s
ON CONFLICT DO NOTHING

-- keep_producers --
-- Keep the producers of the index that say at least what the readable events say. Returns how many
-- events more than these all of them count.
WITH more AS (
    SELECT i.*, i.event_count - coalesce(x.event_count, 0) AS more_count
    FROM public.producer i
    LEFT JOIN pg_temp.producer x
      ON x.tenant_id = %(tenant_id)s AND x.producer_id = i.producer_id
    WHERE i.tenant_id = %(tenant_id)s
      AND (
          x.producer_id IS NULL
          OR i.event_count >= x.event_count
         AND i.last_heard_at >= x.last_heard_at
         AND (x.first_seq IS NULL OR i.first_seq <= x.first_seq AND i.last_seq >= x.last_seq)
      )
), kept AS (
    INSERT INTO pg_temp.producer AS p (
        tenant_id, producer_id, first_seq, last_seq, event_count, last_heard_at
    )
    SELECT tenant_id, producer_id, first_seq, last_seq, event_count, last_heard_at FROM more
    ON CONFLICT (tenant_id, producer_id) DO UPDATE SET
        first_seq = excluded.first_seq,
        last_seq = excluded.last_seq,
        event_count = excluded.event_count,
        last_heard_at = excluded.last_heard_at
)
SELECT coalesce(sum(more_count), 0)::bigint FROM more

-- keep_gaps --
-- Keep the gaps of the index whose events can no longer be read.
INSERT INTO pg_temp.gap
SELECT g.* FROM public.gap g WHERE g.tenant_id = %(tenant_id)s
ON CONFLICT DO NOTHING

-- note_expired_calls --
-- Note the rebuilt calls before the first day that is kept, unless the index still has them. Noted
-- first, because Citus deletes from a local table by local tables only.
INSERT INTO expired_invocation (started_on, invocation_id)
SELECT x.started_on, x.invocation_id
FROM pg_temp.invocation x
LEFT JOIN public.invocation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = x.started_on
 AND i.invocation_id = x.invocation_id
WHERE x.tenant_id = %(tenant_id)s
  AND x.started_on < %(first)s
  AND i.tenant_id IS NULL

-- forget_expired_calls --
-- Delete what was noted.
DELETE FROM pg_temp.invocation x
USING expired_invocation gone
WHERE x.tenant_id = %(tenant_id)s
  AND x.started_on = gone.started_on
  AND x.invocation_id = gone.invocation_id

-- note_expired_decisions --
-- As note_expired_calls, for this table.
INSERT INTO expired_decision (started_on, decision_id)
SELECT x.started_on, x.decision_id
FROM pg_temp.decision x
LEFT JOIN public.decision i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = x.started_on
 AND i.decision_id = x.decision_id
WHERE x.tenant_id = %(tenant_id)s
  AND x.started_on < %(first)s
  AND i.tenant_id IS NULL

-- forget_expired_decisions --
-- Delete what was noted.
DELETE FROM pg_temp.decision x
USING expired_decision gone
WHERE x.tenant_id = %(tenant_id)s
  AND x.started_on = gone.started_on
  AND x.decision_id = gone.decision_id

-- note_expired_violations --
-- As note_expired_calls, for this table.
INSERT INTO expired_violation (started_on, invocation_id, ordinal)
SELECT x.started_on, x.invocation_id, x.ordinal
FROM pg_temp.violation x
LEFT JOIN public.violation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = x.started_on
 AND i.invocation_id = x.invocation_id
 AND i.ordinal = x.ordinal
WHERE x.tenant_id = %(tenant_id)s
  AND x.started_on < %(first)s
  AND i.tenant_id IS NULL

-- forget_expired_violations --
-- Delete what was noted.
DELETE FROM pg_temp.violation x
USING expired_violation gone
WHERE x.tenant_id = %(tenant_id)s
  AND x.started_on = gone.started_on
  AND x.invocation_id = gone.invocation_id
  AND x.ordinal = gone.ordinal

-- calls_without_partition --
-- The days with rebuilt calls that have no partitions, and how many calls.
SELECT started_on, count(*)
FROM pg_temp.invocation
WHERE tenant_id = %(tenant_id)s AND started_on <> ALL(%(days)s)
GROUP BY started_on
ORDER BY started_on

-- rebuilt_decisions --
-- The next rebuilt decisions, with the columns that count in their traces.
SELECT started_on - date '1970-01-01', decision_id, decided_at, trace_id, tool_name, run_id
FROM pg_temp.decision
WHERE tenant_id = %(tenant_id)s
  AND (started_on, decision_id) > (date '1970-01-01' + %(day)s::integer, %(decision_id)s)
ORDER BY started_on, decision_id
LIMIT %(row_limit)s

-- rebuilt_calls --
-- The next rebuilt calls, with the columns that ingest's upsert returns for a completely new call.
SELECT started_on - date '1970-01-01', invocation_id, started_at, ended_at, duration_us, state,
       tool_name, tool_version, trace_id, run_id, error_type, violation_count, prompt_tokens,
       completion_tokens, cache_hit, TRUE, end_batch_id IS NOT NULL, TRUE
FROM pg_temp.invocation
WHERE tenant_id = %(tenant_id)s
  AND (started_on, invocation_id) > (date '1970-01-01' + %(day)s::integer, %(invocation_id)s)
ORDER BY started_on, invocation_id
LIMIT %(call_limit)s

-- forget_violation_days --
-- Delete the sums of violations, as they may count violations that were deleted since.
DELETE FROM pg_temp.violation_day WHERE tenant_id = %(tenant_id)s

-- rebuild_violation_days --
-- Rebuild the sums from the current violations.
INSERT INTO pg_temp.violation_day (
    tenant_id, started_on, kind, tool_name, tool_version, path_pattern, code, strategy, outcome,
    violation_count, call_count, first_at, last_at
)
SELECT tenant_id, started_on, {{violation_kind}}, tool_name, tool_version, path_pattern, code,
       strategy, outcome, count(*), count(DISTINCT invocation_id), min(started_at),
       max(started_at)
FROM pg_temp.violation
WHERE tenant_id = %(tenant_id)s
GROUP BY tenant_id, started_on, tool_name, tool_version, path_pattern, code, strategy, outcome
